// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>

#include <tessera/base/alias.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/nn/layer_call.hpp>
#include <tessera/nn/mode_product.hpp>

namespace tessera {
namespace {

// Made once: a launch then needs no memory for its label.
const std::string mode_take_label = "tessera::mode_take";
const std::string mode_expand_label = "tessera::mode_expand";
const std::string mode_put_label = "tessera::mode_put";
const std::string mode_join_label = "tessera::mode_join_gradient";

/// Samples that are multiplied at a time: what the operands of a mode take does not grow with them.
constexpr Size mode_samples = 64;

std::vector<Layout> mode_product_layouts(const LayerSpec&) {
  constexpr Placement whole = Placement::replicate(), columns = Placement::shard(1);
  constexpr Placement modes = Placement::shard(0);
  return {{{whole}, {whole}, whole, whole, {whole}, {whole}},
          {{modes}, {columns}, columns, columns, {columns}, {modes}}};
}

Size mode_width(const LayerSpec& layer) { return layer.settings[0]; }

LayerProducts mode_product_products(const LayerSpec& layer, Size samples) {
  const Size w = mode_width(layer), modes = layer.in / (2 * w);
  return {{{2 * samples, w, 2 * w, modes}},
          {{2 * w, w, 2 * samples, modes}, {2 * samples, 2 * w, w, modes}}};
}

/// One mode of some samples, lying in rows of many modes.
template <class T>
struct ModeColumns {
  T* data;
  Size stride;
};

/// The real and imaginary parts of a sample, side by side.
template <class T>
struct TakeMode {
  ModeColumns<const T> in;
  T* out;
  Size width;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const T* const from = in.data + team.league_rank() * in.stride;
    T* const to = out + team.league_rank() * 2 * width;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, 2 * width),
                         [=](Size j) { to[j] = from[j]; });
  }
};

template <class T>
struct PutMode {
  const T* in;
  ModeColumns<T> out;
  Size width;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const T* const from = in + team.league_rank() * 2 * width;
    T* const to = out.data + team.league_rank() * out.stride;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, 2 * width),
                         [=](Size j) { to[j] = from[j]; });
  }
};

/// Two rows of a sample, (real, -imaginary) and (imaginary, real): times the real parts of R above
/// the imaginary ones, they give the real and the imaginary parts of the product.
template <class T>
struct ExpandMode {
  ModeColumns<const T> in;
  T* out;
  Size width;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const Size w = width;
    const T* const from = in.data + team.league_rank() * in.stride;
    T* const to = out + team.league_rank() * 4 * w;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, w), [=](Size j) {
      const StateOf<T> real = from[j], imaginary = from[w + j];
      to[j] = to[3 * w + j] = real;
      to[w + j] = -imaginary;
      to[2 * w + j] = imaginary;
    });
  }
};

/// The transpose of ExpandMode.
template <class T>
struct JoinMode {
  const T* in;
  ModeColumns<T> out;
  Size width;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const Size w = width;
    const T* const from = in + team.league_rank() * 4 * w;
    T* const to = out.data + team.league_rank() * out.stride;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, w), [=](Size j) {
      to[j] = static_cast<StateOf<T>>(from[j]) + from[3 * w + j];
      to[w + j] = static_cast<StateOf<T>>(from[2 * w + j]) - from[w + j];
    });
  }
};

template <class T>
class ModeProduct {
 public:
  explicit ModeProduct(const LayerCall<T>& call)
      : call_(call), width_(mode_width(call.layer)), modes_(call.layer.in / (2 * width_)) {}

  void forward() const {
    for_modes([&](Size mode, Range samples) {
      const Matrix<T> y = narrow(samples);
      call_.gemm(Trans::no, Trans::no, expanded(mode, samples), factor(call_.parameters[0], mode),
                 0, y);
      run(mode_put_label, samples,
          PutMode<T>{y.data(), columns_of(call_.output, mode, samples), width_});
    });
  }

  void backward() const {
    const bool wants_inputs = call_.input_gradients[0].data() != nullptr;
    const bool wants_parameters = call_.parameter_gradients[0].data() != nullptr;
    if (wants_parameters && call_.samples == 0 && !call_.add_parameter_gradients)
      Kokkos::deep_copy(ExecSpace(), call_.parameter_gradients[0], StateOf<T>(0));
    for_modes([&](Size mode, Range samples) {
      const Matrix<T> dy = narrow(samples);
      run(mode_take_label, samples,
          TakeMode<T>{columns_of(call_.output_gradient, mode, samples), dy.data(), width_});
      if (wants_parameters)
        call_.gemm(Trans::yes, Trans::no, expanded(mode, samples), dy,
                   call_.add_parameter_gradients || samples.begin > 0 ? 1 : 0,
                   factor(call_.parameter_gradients[0], mode));
      if (!wants_inputs) return;
      const Matrix<T> dx = wide(samples);
      call_.gemm(Trans::no, Trans::yes, dy, factor(call_.parameters[0], mode), 0, dx);
      run(mode_join_label, samples,
          JoinMode<T>{dx.data(), columns_of(call_.input_gradients[0], mode, samples), width_});
    });
  }

 private:
  /// f(mode, samples), for all modes of some samples at a time.
  template <class F>
  void for_modes(const F& f) const {
    for (Size mode = 0; mode < modes_; ++mode)
      for (Size begin = 0; begin < call_.samples; begin += mode_samples)
        f(mode, Range{begin, std::min(mode_samples, call_.samples - begin)});
  }

  template <class Kernel>
  void run(const std::string& label, Range samples, const Kernel& kernel) const {
    for_each_row(label, samples.count, 2 * width_, kernel);
  }

  template <class E>
  ModeColumns<E> columns_of(const Matrix<E>& of, Size mode, Range samples) const {
    const Size stride = modes_ * 2 * width_;
    return {of.data() + samples.begin * stride + mode * 2 * width_, stride};
  }
  template <class E>
  Matrix<E> factor(const Vector<E>& of, Size mode) const {
    return alias_matrix(of.data() + mode * 2 * width_ * width_, 2 * width_, width_);
  }

  T* scratch() const { return reinterpret_cast<T*>(call_.scratch.data()); }
  Matrix<T> wide(Range samples) const {
    return alias_matrix(scratch(), 2 * samples.count, 2 * width_);
  }
  Matrix<T> narrow(Range samples) const {
    return alias_matrix(scratch() + mode_samples * 4 * width_, 2 * samples.count, width_);
  }

  Matrix<T> expanded(Size mode, Range samples) const {
    const Matrix<T> x = wide(samples);
    run(mode_expand_label, samples,
        ExpandMode<T>{columns_of(call_.inputs[0], mode, samples), x.data(), width_});
    return x;
  }

  const LayerCall<T>& call_;
  Size width_, modes_;
};

constexpr LayerRow mode_product_row{
    .name = "mode_product",
    .layouts = mode_product_layouts,
    .rules_choose = true,
    .products = mode_product_products,
    .scratch = [](const LayerSpec& layer) { return mode_samples * 6 * mode_width(layer); },
    .reads_inputs = always,
    .forward = [](const auto& call) { ModeProduct(call).forward(); },
    .backward = [](const auto& call) { ModeProduct(call).backward(); }};

}  // namespace

LayerSpec mode_product(std::string name, std::string unit, Size input, const FourierGrid& grid,
                       std::uint32_t stream) {
  const Size w = grid.width, columns = grid.kept() * 2 * w;
  LayerSpec layer{&mode_product_row, std::move(name), std::move(unit), {input}, columns, columns};
  layer.parameters = {
      {"modes", {grid.kept(), 2 * w, w}, {"modes", "", ""}, Initial::uniform, stream}};
  layer.group = 2 * grid.modes * w;
  layer.settings = {w};
  return layer;
}

}  // namespace tessera
