// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/rows.hpp>

namespace tessera {
namespace {

/// A norm of each group of `cols` columns, of which the kernels take one in `every`; the others are
/// copied. Saves 1 / deviation of each group and, if it is centred, the mean.
struct NormShape {
  Size rows, cols, every;

  template <class T, class M>
  NormShape(const LayerCall<T>& call, const M& of)
      : cols(call.layer.size("c")), every(call.layer.size("r")) {
    rows = static_cast<Size>(of.size()) / cols;
  }
  KOKKOS_INLINE_FUNCTION bool skips(Size row) const { return row % every != 0; }
};

/// y = scale (x - mean) / deviation + bias.
template <bool centred, class T>
void norm_forward(const LayerCall<T>& call) {
  using Math = StateOf<T>;
  const NormShape shape(call, call.output);
  const T *const x = call.inputs[0].data(), *const scale = call.parameters[0].data(),
                 *const bias = data_or_null(call.parameters[1]);
  T* const y = call.output.data();
  Math* const saved = call.saved.data();
  const Math epsilon = static_cast<Math>(call.layer.template get<NormSettings>().epsilon);
  for_rows(
      "tessera::norm"_label, shape.rows, shape.cols, KOKKOS_LAMBDA(const Row& row) {
        using std::sqrt;
        const Size cols = shape.cols;
        const T* const in = x + row.number * cols;
        T* const out = y + row.number * cols;
        if (shape.skips(row.number)) return row.for_each(cols, [=](Size j) { out[j] = in[j]; });
        const Math n = static_cast<Math>(cols);
        const Math mean =
            centred ? row.sum<Math>(cols, [=](Size j) { return static_cast<Math>(in[j]); }) / n
                    : Math(0);
        const Math square =
            row.sum<Math>(cols, [=](Size j) { return (in[j] - mean) * (in[j] - mean); });
        const Math inverse = Math(1) / sqrt(square / n + epsilon);
        Math* const save = saved + (centred ? 2 : 1) * row.number;
        row.once([=]() {
          save[0] = inverse;
          if (centred) save[1] = mean;
        });
        // Two loops: compilers do not vectorise a loop with a choice inside.
        if (bias)
          row.for_each(
              cols, [=](Size j) { out[j] = scale[j] * ((in[j] - mean) * inverse) + bias[j]; }, in);
        else
          row.for_each(
              cols, [=](Size j) { out[j] = scale[j] * ((in[j] - mean) * inverse); }, in);
      });
}

/// dx = (g - mean(g) - n mean(g n)) / deviation with g = dy scale and n the normalized row; without
/// mean(g) if the norm is not centred.
template <bool centred, class T>
void norm_input_gradient(const LayerCall<T>& call) {
  using Math = StateOf<T>;
  const NormShape shape(call, call.output_gradient);
  const T *const x = call.inputs[0].data(), *const scale = call.parameters[0].data(),
                 *const dy = call.output_gradient.data();
  const Math* const saved = call.saved.data();
  T* const dx = call.input_gradients[0].data();
  const bool add = call.add_input_gradients;
  for_rows(
      "tessera::norm_input_gradient"_label, shape.rows, shape.cols, KOKKOS_LAMBDA(const Row& row) {
        const Size cols = shape.cols, at = row.number * cols;
        const T *const in = x + at, *const d = dy + at;
        T* const out = dx + at;
        if (shape.skips(row.number))
          return row.for_each(cols, [=](Size j) { out[j] = add ? out[j] + d[j] : Math(d[j]); });
        const Math* const save = saved + (centred ? 2 : 1) * row.number;
        const Math inverse = save[0], mean = centred ? save[1] : Math(0),
                   n = static_cast<Math>(cols);
        const Math average =
            centred
                ? row.sum<Math>(cols, [=](Size j) { return static_cast<Math>(d[j]) * scale[j]; }) /
                      n
                : Math(0);
        const Math along = row.sum<Math>(cols, [=](Size j) {
          return d[j] * scale[j] * (in[j] - mean) * inverse;
        }) / n;
        row.for_each(
            cols,
            [=](Size j) {
              const Math gradient =
                  inverse * (d[j] * scale[j] - average - (in[j] - mean) * inverse * along);
              out[j] = add ? out[j] + gradient : gradient;
            },
            in, d);
      });
}

/// dscale = sum over rows of dy n, dbias = sum over rows of dy.
template <bool centred, class T>
void norm_parameter_gradients(const LayerCall<T>& call) {
  using Math = StateOf<T>;
  const NormShape shape(call, call.output_gradient);
  const T *const x = call.inputs[0].data(), *const dy = call.output_gradient.data();
  const Math* const saved = call.saved.data();
  const Size all = static_cast<Size>(call.output_gradient.extent(1)) / shape.cols,
             first = call.columns.begin / shape.cols,
             some = call.columns.count < 0 ? all : call.columns.count / shape.cols,
             groups = static_cast<Size>(call.output_gradient.extent(0)) * some;
  sum_columns<Math>(
      "tessera::norm_parameter_gradients"_label, groups, shape.cols, groups * shape.cols,
      KOKKOS_LAMBDA(const RowPart& part, Math* sums) {
        const Size row = part.number / some * all + first + part.number % some;
        if (shape.skips(row)) return;
        const Size at = row * shape.cols + part.first, width = part.width;
        const T *const in = x + at, *const d = dy + at;
        const Math* const save = saved + (centred ? 2 : 1) * row;
        const Math inverse = save[0], mean = centred ? save[1] : Math(0);
        part.for_each(
            [=](Size j) {
              sums[j] += d[j] * (in[j] - mean) * inverse;
              sums[width + j] += d[j];
            },
            in, d);
      },
      {call.parameter_gradients[0].data(), data_or_null(call.parameter_gradients[1])},
      call.add_parameter_gradients);
}

template <bool centred, class T>
void norm_backward(const LayerCall<T>& call) {
  if (call.parameter_gradients[0].data() != nullptr) norm_parameter_gradients<centred>(call);
  if (call.wants_input_gradient(0)) norm_input_gradient<centred>(call);
}

Size groups_of(const LayerSpec& layer) { return layer.out() / layer.size("c"); }

/// Each pass has two sums over a group of columns, or one if it is not centred.
template <bool centred>
LayerFunctions norm_functions(const LayerSpec& layer) {
  const Size groups = layer.positions() * groups_of(layer) / layer.size("r");
  const auto sums = static_cast<double>((centred ? 2 : 1) * groups);
  return {.row_sums = {sums, sums}};
}

template <bool centred>
constexpr LayerKind norm_kind(std::string_view name, const Expression& expression) {
  return {
      .name = name,
      .expression = expression,
      .functions = norm_functions<centred>,
      .reads_inputs = always,
      .saved_columns = [](const LayerSpec& layer) { return (centred ? 2 : 1) * groups_of(layer); },
      .adds_gradient = true,
      .forward = [](const auto& call) { norm_forward<centred>(call); },
      .backward = [](const auto& call) { norm_backward<centred>(call); }};
}

constexpr Expression of_rows{
    .inputs = {{"sp,c"}}, .parameters = {{"c"}, {"c"}}, .output = "sp,c", .whole = "c"};
constexpr Expression of_heads{
    .inputs = {{"sp,hrc"}}, .parameters = {{"c"}}, .output = "sp,hrc", .whole = "rc"};

constexpr LayerKind layer_norm_kind = norm_kind<true>("layer_norm", of_rows),
                    rms_norm_kind = norm_kind<false>("rms_norm", of_rows),
                    head_norm_kind = norm_kind<false>("head_norm", of_heads);

LayerSpec norm(const LayerKind& kind, std::string name, std::string unit, Size input, Size width,
               const std::string& logical_axis, double epsilon, bool bias) {
  LayerSpec layer{&kind, std::move(name), std::move(unit), {input}, {{'c', width}}};
  layer.parameters = {{"scale", {width}, {logical_axis}, Initial::ones}};
  if (bias) layer.parameters.push_back({"bias", {width}, {logical_axis}, Initial::zeros});
  layer.settings = NormSettings{epsilon};
  return layer;
}

}  // namespace

LayerSpec layer_norm(std::string name, std::string unit, Size input, Size width,
                     const std::string& logical_axis, double epsilon, bool bias) {
  return norm(layer_norm_kind, std::move(name), std::move(unit), input, width, logical_axis,
              epsilon, bias);
}

LayerSpec rms_norm(std::string name, std::string unit, Size input, Size width,
                   const std::string& logical_axis, double epsilon) {
  return norm(rms_norm_kind, std::move(name), std::move(unit), input, width, logical_axis, epsilon,
              false);
}

LayerSpec head_norm(std::string name, std::string unit, Size input, Size heads, Size of_head,
                    Size head_width, double epsilon) {
  LayerSpec layer =
      norm(head_norm_kind, std::move(name), std::move(unit), input, head_width, "", epsilon, false);
  layer.sizes.insert({{'h', heads}, {'r', of_head}});
  return layer;
}

}  // namespace tessera
