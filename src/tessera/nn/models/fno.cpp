// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/model_fields.hpp>

namespace tessera {
namespace {

constexpr Size fno_input_width = 3;        // the function and two coordinates
constexpr Size most_grid = Size{1} << 12;  // whose square is most_positions

std::string allowed_grid(const FnoConfig& config) {
  if (config.grid / 2 >= config.modes) return "";
  return fmt::format("must be at least twice model.fno.modes = {}", config.modes);
}

}  // namespace

const Fields<FnoConfig>& fno_fields() {
  using C = FnoConfig;
  static const Fields<C> fields{
      {"model.fno.grid", &C::grid, "number of grid points along each dimension", up_to(most_grid),
       Rule<C>{allowed_grid, When::always}},
      {"model.fno.modes", &C::modes,
       "modes kept along the second dimension; twice as many along the first", a_width},
      {"model.fno.width", &C::width, "channels of the field", a_width},
      {"model.fno.layers", &C::layers, "number of Fourier layers", a_depth},
      {"model.fno.projection", &C::projection, "width between the two layers of the projection",
       a_width},
  };
  return fields;
}

ModelSpec fno(const FnoConfig& config, const MlpConfig& layers) {
  check(fno_fields(), config);
  check_no_output_activation("fno", layers);
  ModelSpec model{{}, fno_input_width, layers.initializer, layers.seed};
  model.input_positions = config.grid * config.grid;

  const Size width = config.width;
  const FourierGrid grid{config.grid, config.modes, width};
  constexpr Activation none = Activation::identity;
  std::uint32_t number = 0;
  Size v = append_dense(model, {"lift", LayerSpec::data, fno_input_width, width, "embed", "embed",
                                none, layers.bias, number++});
  for (Size l = 1; l <= config.layers; ++l) {
    const std::string unit = fmt::format("layer{}", l);
    const Size modes = model.append(fourier(unit + "/modes", unit, v, grid));
    const Size mixed =
        model.append(mode_product(unit + "/mixed_modes", unit, modes, grid, 2 * number++));
    const Size global = model.append(inverse_fourier(unit + "/global", unit, mixed, grid));
    const Size local =
        append_dense(model, {unit, v, width, width, "embed", "embed", none, false, number++});
    const Size sum = model.append(add(unit + "/sum", unit, global, local, width));
    v = model.append(pointwise(unit + "/activation", unit, sum, width,
                               l < config.layers ? layers.activation : none, "embed"));
  }
  v = append_dense(model, {"projection", v, width, config.projection, "embed", "mlp",
                           layers.activation, layers.bias, number++});
  append_dense(model,
               {"output", v, config.projection, 1, "mlp", "embed", none, layers.bias, number});
  return model;
}

}  // namespace tessera
