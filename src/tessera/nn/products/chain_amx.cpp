// SPDX-License-Identifier: Apache-2.0
#include <tessera/nn/products/chain_kernel.hpp>

#if defined(__AMX_BF16__) && !defined(__CUDACC__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tessera::detail {
namespace {

constexpr int side = 16;  // of a tile register in pairs of numbers, or sums: 16 rows of 64 bytes

/// The operand of ldtilecfg, for eight registers of 16 rows.
struct alignas(64) TileShapes {
  unsigned char palette = 1, reserved[15] = {};
  unsigned short row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  unsigned char rows[16] = {side, side, side, side, side, side, side, side};
};
constexpr TileShapes shapes;

/// Other code of this thread may use the registers, too. To read their shapes takes less time than
/// to set them.
void set_shapes() {
  TileShapes now;
  asm volatile("sttilecfg %0" : "=m"(now));
  if (__builtin_memcmp(&now, &shapes, sizeof now) != 0)
    asm volatile("ldtilecfg %0" : : "m"(shapes));
}

/// Also computes the rows and columns of a register behind the last ones: panels have room.
void multiply_pairs(const ChainTile<float>& tile) {
  constexpr Size width = tile_columns<float>, row = width * sizeof(float);
  const Size a_row = tile.a_row * static_cast<Size>(sizeof(float));
  const bool has_second = tile.columns > side, has_lower = tile.rows > side;
  float *const sums = tile.sums, *const lower = sums + side * width;
  set_shapes();
  if (tile.continues) {
    _tile_loadd(0, sums, row);
    _tile_loadd(1, sums + side, row);
    _tile_loadd(2, lower, row);
    _tile_loadd(3, lower + side, row);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (Size t = 0; t < tile.terms; t += side) {
    const float *const a = tile.a + t, *const b = tile.b + t * width;
    _tile_loadd(4, a, a_row);
    _tile_loadd(6, b, row);
    _tile_dpbf16ps(0, 4, 6);
    if (has_second) _tile_loadd(7, b + side, row);
    if (has_second) _tile_dpbf16ps(1, 4, 7);
    if (!has_lower) continue;
    _tile_loadd(5, a + side * tile.a_row, a_row);
    _tile_dpbf16ps(2, 5, 6);
    if (has_second) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, row);
  if (has_second) _tile_stored(1, sums + side, row);
  if (has_lower) _tile_stored(2, lower, row);
  if (has_lower && has_second) _tile_stored(3, lower + side, row);
}

}  // namespace

ChainKernels<float> amx_kernels() { return {multiply_pairs, transpose<float>, 2 * side, true}; }

bool has_amx() {
  constexpr unsigned bf16_and_tiles = 1u << 22 | 1u << 24;
  constexpr long request = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned a, b, c, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (~d & bf16_and_tiles) == 0 &&
         syscall(SYS_arch_prctl, request, tile_data) == 0;
}

}  // namespace tessera::detail

#endif
