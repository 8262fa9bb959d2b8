// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/layers/shared_rows.hpp>
#include <tessera/nn/rows.hpp>

namespace tessera {
namespace {

/// Returns the angle by which pair `j` of `pairs` turns from one position to the next.
KOKKOS_INLINE_FUNCTION double frequency(const Rope& rope, Size j, Size pairs) {
  using std::pow;
  constexpr double two_pi = 6.28318530717958647693;
  const double plain = pow(rope.theta, -static_cast<double>(j) / static_cast<double>(pairs));
  if (rope.original_context == 0) return plain;
  const double turns = static_cast<double>(rope.original_context) * plain / two_pi;
  const double smooth = (turns - rope.low_turns) / (rope.high_turns - rope.low_turns);
  const double kept = smooth < 0 ? 0 : (smooth > 1 ? 1 : smooth);
  return (1 - kept) * plain / rope.factor + kept * plain;
}

/// Writes the cosines of all pairs, and the sines behind them, for each position of the rank. Runs
/// of positions begin with exact values, from which the next ones follow by rotation. So a row
/// depends on its position only.
template <class Math>
void fill_table(const LayerSpec& layer, Math* table) {
  constexpr Size run = 64;
  const Size pairs = layer.size("d") / 2, positions = layer.total('p');
  const Rope rope = layer.get<Rope>();
  const detail::OwnRuns rows(detail::share_of(layer, layer.positions()));
  for_each(
      "tessera::rope_table"_label, (positions + run - 1) / run * pairs,
      KOKKOS_LAMBDA(Size i) {
        using std::cos;
        using std::sin;
        const Size j = i % pairs, first = i / pairs * run,
                   end = first + run < positions ? first + run : positions;
        const double turn = frequency(rope, j, pairs), turn_cosine = cos(turn),
                     turn_sine = sin(turn), angle = static_cast<double>(first) * turn;
        double cosine = cos(angle), sine = sin(angle);
        for (Size position = first; position < end; ++position) {
          if (const Size row = rows.row_of(position); row >= 0) {
            table[row * 2 * pairs + j] = static_cast<Math>(cosine);
            table[row * 2 * pairs + pairs + j] = static_cast<Math>(sine);
          }
          const double next = cosine * turn_cosine - sine * turn_sine;
          sine = sine * turn_cosine + cosine * turn_sine;
          cosine = next;
        }
      },
      positions * pairs);
}

/// Turns the pairs (j, j + d / 2) of the first d columns of each head, and copies the others. `to`
/// may alias `from`.
template <class T>
void rotate(const LayerCall<T>& call, const T* from, T* to, bool back) {
  using Math = StateOf<T>;
  const LayerSpec& layer = call.layer;
  const Size width = layer.size("d"), pairs = width / 2, of_head = layer.size("r") * width,
             heads = layer.size("h"), positions = layer.positions(), cols = heads * of_head;
  Math* const table = call.scratch.data();
  fill_table(layer, table);
  for_rows(
      "tessera::rope"_label, call.samples * positions, cols, KOKKOS_LAMBDA(const Row& row) {
        const Math* const cosines = table + row.number % positions * width;
        const Math* const sines = cosines + pairs;
        for (Size h = 0; h < heads; ++h) {
          const Size at = row.number * cols + h * of_head;
          const T* const in = from + at;
          T* const out = to + at;
          row.for_each(pairs, [=](Size j) {
            const Math a = in[j], b = in[pairs + j], sine = back ? -sines[j] : sines[j];
            out[j] = a * cosines[j] - b * sine;
            out[pairs + j] = b * cosines[j] + a * sine;
          });
          if (out != in)
            row.for_each(of_head - width, [=](Size j) { out[width + j] = in[width + j]; });
        }
      });
}

constexpr LayerKind rope_kind{
    .name = "rope",
    .expression = {.inputs = {{"sp,hrd"}}, .output = "sp,hrd", .whole = "rd"},
    .scratch = [](const LayerSpec& layer, Size) { return layer.positions() * layer.size("d"); },
    .in_place_of = 0,
    .gradient_in_place = true,
    .forward =
        [](const auto& call) { rotate(call, call.inputs[0].data(), call.output.data(), false); },
    .backward =
        [](const auto& call) {
          rotate(call, call.output_gradient.data(), call.input_gradients[0].data(), true);
        }};

}  // namespace

LayerSpec rotary(std::string name, std::string unit, Size input, Size heads, Size of_head,
                 Size head_width, const Rope& rope) {
  LayerSpec layer{&rope_kind,
                  std::move(name),
                  std::move(unit),
                  {input},
                  {{'h', heads}, {'r', of_head}, {'d', head_width}}};
  layer.settings = rope;
  return layer;
}

}  // namespace tessera
