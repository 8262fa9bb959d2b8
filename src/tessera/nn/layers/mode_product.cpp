// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <tessera/base/alias.hpp>
#include <tessera/base/share_items.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/rows.hpp>

namespace tessera {
namespace {

Size modes_at_once(const LayerSpec& layer) {
  return layer.tiling.by_thread(layer.size("m"), layer.size("rizo"));
}

/// Turns the complex factors R of each mode, (Re; Im) of shape (2 w, w), into the real matrix
/// ((Re, Im), (-Im, Re)) of shape (2 w, 2 w). A row (Re x, Im x) times it is (Re x R, Im x R).
template <class T>
void expand_factors(Size modes, Size w, const T* factors, T* expanded) {
  for_rows(
      "tessera::mode_expand"_label, modes * w, 4 * w, KOKKOS_LAMBDA(const Row& row) {
        const Size mode = row.number / w, i = row.number % w;
        const T *const real = factors + (mode * 2 * w + i) * w, *const imaginary = real + w * w;
        T *const above = expanded + (mode * 2 * w + i) * 2 * w, *const below = above + w * 2 * w;
        row.for_each(w, [=](Size j) {
          above[j] = below[w + j] = real[j];
          above[w + j] = imaginary[j];
          below[j] = -static_cast<StateOf<T>>(imaginary[j]);
        });
      });
}

/// The transpose of expand_factors(): turns the gradient of that matrix into the gradient of R.
template <class State>
void join_gradients(Size modes, Size w, const State* expanded, State* factors, bool add) {
  for_rows(
      "tessera::mode_join_gradient"_label, modes * w, 4 * w, KOKKOS_LAMBDA(const Row& row) {
        const Size mode = row.number / w, i = row.number % w;
        const State *const above = expanded + (mode * 2 * w + i) * 2 * w, *const below =
                                                                              above + w * 2 * w;
        State *const real = factors + (mode * 2 * w + i) * w, *const imaginary = real + w * w;
        row.for_each(w, [=](Size j) {
          real[j] = (add ? real[j] : State(0)) + above[j] + below[w + j];
          imaginary[j] = (add ? imaginary[j] : State(0)) + above[w + j] - below[j];
        });
      });
}

template <class T>
class ModeProduct {
 public:
  using State = StateOf<T>;

  explicit ModeProduct(const LayerCall<T>& call)
      : call_(call),
        w_(call.layer.size("i")),
        modes_(call.layer.size("m")),
        places_(modes_at_once(call.layer)),
        on_cpu_(call.layer.tiling.threads > 0),
        at_once_(on_cpu_ ? 1 : places_) {}

  void forward() const { multiply(Trans::no, call_.inputs[0], call_.output); }

  void backward() const {
    // The other ranks of `context` have the other modes.
    if (call_.layer.share.parts > 1 && !call_.add_parameter_gradients &&
        call_.parameter_gradients[0].data() != nullptr)
      set_minus_zero(call_.parameter_gradients[0]);
    if (call_.parameter_gradients[0].data() != nullptr)
      share(modes_, [&](Range own, Size place) {
        for_modes(own, [&](Range modes) {
          const Matrix<State> sums = squares<State>(places_ + place);
          call_.gemm.multiply_batch(Trans::yes, Trans::no, columns(call_.inputs[0], rows_, modes),
                                    columns(call_.output_gradient, rows_, modes), 0, sums,
                                    {modes.count, 2 * w_, 2 * w_, square_});
          join_gradients<State>(modes.count, w_, sums.data(),
                                factors(call_.parameter_gradients[0], modes),
                                call_.add_parameter_gradients);
        });
      });
    if (call_.wants_input_gradient(0))
      multiply(Trans::yes, call_.output_gradient, call_.input_gradients[0]);
  }

 private:
  /// Multiplies rows by the factors of their modes, or by the transposes. Threads share the rows,
  /// as those of other layers do, unless expanding all factors on each takes longer than that.
  void multiply(Trans trans, const Matrix<const T>& from, const Matrix<T>& to) const {
    const bool by_rows = rows_.count >= 8 * kernel_threads();
    share(by_rows ? rows_.count : modes_, [&](Range own, Size place) {
      const Range rows = by_rows ? own : rows_;
      for_modes(by_rows ? Range{0, modes_} : own, [&](Range modes) {
        call_.gemm.multiply_batch(Trans::no, trans, columns(from, rows, modes),
                                  expanded(modes, place), 0, columns(to, rows, modes),
                                  {modes.count, 2 * w_, square_, 2 * w_});
      });
    });
  }

  /// Calls f(items, place) for the runs of items that threads share; `place` is that of the
  /// matrices of a run in the scratch memory.
  template <class F>
  void share(Size items, const F& f) const {
    const Region region(on_cpu_ ? products_region : "tessera::mode_product");
    const bool is_shared = on_cpu_ && call_.gemm.is_reentrant() && occupies_threads(items);
    share_items("tessera::mode_product"_label, items, is_shared ? places_ : 1,
                rows_.count * modes_ * 2 * w_, f);
  }
  /// Calls f(modes) for the modes that are multiplied at once.
  template <class F>
  void for_modes(const Range& of, const F& f) const {
    for (Size mode = of.begin; mode < of.end(); mode += at_once_)
      f(Range{mode, std::min(at_once_, of.end() - mode)});
  }

  // These return the columns, factors or matrix of the first of some modes; the others follow.
  template <class E>
  Matrix<E> columns(const Matrix<E>& of, const Range& rows, const Range& modes) const {
    return block_of(of, rows, {modes.begin * 2 * w_, 2 * w_});
  }
  template <class E>
  E* factors(const Vector<E>& of, Range modes) const {
    return of.data() + (call_.layer.share.part * modes_ + modes.begin) * 2 * w_ * w_;
  }
  template <class E>
  Matrix<E> squares(Size number) const {
    return alias_matrix(reinterpret_cast<E*>(call_.scratch.data() + number * square_), 2 * w_,
                        2 * w_);
  }

  Matrix<T> expanded(Range modes, Size place) const {
    const Matrix<T> made = squares<T>(place);
    expand_factors<T>(modes.count, w_, factors(call_.parameters[0], modes), made.data());
    return made;
  }

  const LayerCall<T>& call_;
  Size w_, modes_;
  Size places_;  ///< of the matrices of modes in the scratch memory, for each of two kinds
  bool on_cpu_;
  Size at_once_;  ///< modes in a product
  Size square_ = 4 * w_ * w_;
  Range rows_{0, call_.samples};
};

/// r are the real and imaginary parts of x, and z those of y.
constexpr LayerKind mode_product_kind{
    .name = "mode_product",
    .expression = {.inputs = {{"s,mri"}}, .parameters = {{"m,ri,o"}}, .output = "s,mzo"},
    .rules_choose = true,
    .at_once = modes_at_once,
    .scratch = [](const LayerSpec& layer,
                  Size) { return modes_at_once(layer) * 2 * layer.size("rizo"); },
    .reads_inputs = always,
    .forward = [](const auto& call) { ModeProduct(call).forward(); },
    .backward = [](const auto& call) { ModeProduct(call).backward(); }};

}  // namespace

LayerSpec mode_product(std::string name, std::string unit, Size input, const FourierGrid& grid,
                       std::uint32_t stream) {
  const Size w = grid.width;
  LayerSpec layer{&mode_product_kind,
                  std::move(name),
                  std::move(unit),
                  {input},
                  {{'m', grid.num_modes()}, {'r', 2}, {'i', w}, {'z', 2}, {'o', w}}};
  layer.parameters = {
      {"modes", {grid.num_modes(), 2 * w, w}, {"modes", "", ""}, Initial::uniform, stream}};
  layer.groups = {"modes", "model.fno.modes", grid.modes};
  return layer;
}

}  // namespace tessera
