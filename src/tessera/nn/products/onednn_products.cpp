// SPDX-License-Identifier: Apache-2.0
// The only file that includes oneDNN.
#include <algorithm>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include <tessera/base/error.hpp>
#include <tessera/base/openblas_core.hpp>
#include <tessera/nn/products/library_product.hpp>

namespace tessera {
namespace {

using Memory = dnnl::memory;

/// A prepared product of one shape. Preparing takes longer than a small product.
struct ReadyProduct {
  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;
  Memory a, b, c;
};

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

Memory::data_type type_of(DType type) {
  if (type == DType::float32) return Memory::data_type::f32;
  return type == DType::bfloat16 ? Memory::data_type::bf16 : Memory::data_type::f16;
}

/// `stride`: elements between rows of the stored matrix.
Memory::desc matrix(Size rows, Size cols, Size stride, DType type, Trans trans) {
  const bool straight = trans == Trans::no;
  return {{rows, cols}, type_of(type), {straight ? stride : 1, straight ? 1 : stride}};
}

dnnl::matmul::primitive_desc describe(const detail::LibraryProduct& p) {
  const Memory::desc a = matrix(p.m, p.k, p.lda, p.operands, p.trans_a),
                     b = matrix(p.k, p.n, p.ldb, p.operands, p.trans_b),
                     c = matrix(p.m, p.n, p.ldc, p.result, Trans::no);
  dnnl::primitive_attr attributes;
  if (p.beta != 0) {
    dnnl::post_ops after;
    after.append_sum(static_cast<float>(p.beta));
    attributes.set_post_ops(after);
  }
#if DNNL_VERSION_MAJOR >= 3
  return {cpu(), a, b, c, attributes};
#else
  return {dnnl::matmul::desc(a, b, c), attributes, cpu()};
#endif
}

ReadyProduct make_ready(const detail::LibraryProduct& p) {
  const dnnl::matmul::primitive_desc made = describe(p);
  const auto memory = [](const Memory::desc& desc) { return Memory(desc, cpu(), nullptr); };
  return {made, dnnl::matmul(made), memory(made.src_desc()), memory(made.weights_desc()),
          memory(made.dst_desc())};
}

/// Returns true if oneDNN has more than its reference code for this type, which is far slower than
/// the emulation.
bool is_fast(DType type) {
  try {
    const auto made =
        describe({Trans::no, Trans::no, 64, 64, 64, 64, 64, 64, 0, type, DType::float32});
    return std::string(made.impl_info_str()).find("ref") == std::string::npos;
  } catch (const dnnl::error&) {
    return false;
  }
}

/// Returns the terms of each sum that a call adds. With AVX-512, oneDNN reads a long transposed
/// first operand in place if the result has few columns. A block of its rows that stays in the
/// second cache is read once.
Size terms_at_once(const detail::LibraryProduct& p) {
  static const bool reads_in_place = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core;
  constexpr Size few_columns = 512, long_rows = 1024, elements = 3 << 16;
  const bool is_slow = reads_in_place && p.trans_a == Trans::yes && p.trans_b == Trans::no &&
                       p.n <= few_columns && p.m >= long_rows;
  return is_slow ? std::max<Size>(32, elements / p.m) : p.k;
}

void multiply_floats(const detail::LibraryProduct& p, const float* a, const float* b, float* c) {
  const Size most = terms_at_once(p);
  for (Size begin = 0; begin < p.k; begin += most)
    dnnl::error::wrap_c_api(
        dnnl_sgemm(static_cast<char>(p.trans_a), static_cast<char>(p.trans_b), p.m, p.n,
                   std::min(most, p.k - begin), 1, a + begin * p.lda, p.lda, b + begin * p.ldb,
                   p.ldb, begin == 0 ? static_cast<float>(p.beta) : 1, c, p.ldc),
        "sgemm failed");
}

}  // namespace

/// Asks oneDNN once for each 16-bit type.
HalfProducts half_products(DType type) {
  static std::map<DType, bool> fast;
  if (!is_half(type)) return HalfProducts::emulated;
  const auto [known, is_new] = fast.try_emplace(type, false);
  if (is_new) known->second = is_fast(type);
  return known->second ? HalfProducts::onednn : HalfProducts::emulated;
}

bool has_native_tf32() { return false; }

/// OpenBLAS multiplies up to 100^3 terms without a copy of the operands, and faster, fewer if the
/// second is transposed. Its kernels for an older core are slower, and threads wait for its lock.
/// On processors without AVX2, oneDNN has slow code.
bool detail::multiplies_faster(DType operands, Trans trans_b, Size terms) {
  static const bool is_fast = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx2,
                    others_are_slow = !faster_core(cpu_features(), openblas_core()).empty();
  const Size side = others_are_slow ? 24 : trans_b == Trans::yes ? 48 : 100;
  return is_fast && operands == DType::float32 && terms > side * side * side;
}

void detail::multiply(const LibraryProduct& p, const void* a, const void* b, void* c) {
  // Threads multiply at the same time, each on its own.
  static thread_local std::map<LibraryProduct, ReadyProduct> ready;
  static thread_local dnnl::stream stream(cpu());
  try {
    if (p.operands == DType::float32)
      return multiply_floats(p, static_cast<const float*>(a), static_cast<const float*>(b),
                             static_cast<float*>(c));
    auto found = ready.find(p);
    if (found == ready.end()) found = ready.emplace(p, make_ready(p)).first;
    ReadyProduct& product = found->second;
    product.a.set_data_handle(const_cast<void*>(a));
    product.b.set_data_handle(const_cast<void*>(b));
    product.c.set_data_handle(c);
    product.primitive.execute(
        stream,
        {{DNNL_ARG_SRC, product.a}, {DNNL_ARG_WEIGHTS, product.b}, {DNNL_ARG_DST, product.c}});
    stream.wait();
  } catch (const dnnl::error& error) {
    const bool no_memory = error.status == dnnl_out_of_memory;
    throw Error(no_memory ? ExitCode::out_of_memory : ExitCode::usage,
                "oneDNN: product of {} x {} x {} {}: {}", p.m, p.n, p.k, name_of(p.operands),
                error.what());
  }
}

}  // namespace tessera
