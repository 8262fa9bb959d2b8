// SPDX-License-Identifier: Apache-2.0
// Products on CUDA devices. The only file that includes cuBLAS. One handle on one stream: cuBLAS
// then repeats its results bit by bit, because it allows no atomics by default.
#include <cublas_v2.h>

#include <Kokkos_Core.hpp>

#include <tessera/base/error.hpp>
#include <tessera/nn/products/library_product.hpp>

namespace tessera {
namespace {

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  // cublasCreate() says that it is not initialized if the device lacks memory for it.
  const bool no_memory =
      status == CUBLAS_STATUS_ALLOC_FAILED || status == CUBLAS_STATUS_NOT_INITIALIZED;
  throw Error(no_memory ? ExitCode::out_of_memory : ExitCode::usage, "{}{}: {}",
              no_memory ? "out of memory: " : "", call, cublasGetStatusString(status));
}

/// Returns the handle, which is made once and destroyed before Kokkos is finalized.
cublasHandle_t handle() {
  static cublasHandle_t made = [] {
    cublasHandle_t one = nullptr;
    check(cublasCreate(&one), "cublasCreate");
    check(cublasSetStream(one, Kokkos::Cuda().cuda_stream()), "cublasSetStream");
    // Parts of a split sum stay in float.
    check(cublasSetMathMode(one, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
          "cublasSetMathMode");
    Kokkos::push_finalize_hook([one] { cublasDestroy(one); });
    return one;
  }();
  return made;
}

cudaDataType_t type_of(DType type) {
  if (type == DType::float64) return CUDA_R_64F;
  if (type == DType::float32) return CUDA_R_32F;
  return type == DType::bfloat16 ? CUDA_R_16BF : CUDA_R_16F;
}

cublasComputeType_t sums_of(const detail::LibraryProduct& p) {
  if (p.operands == DType::float64) return CUBLAS_COMPUTE_64F;
  return p.precision == MatmulPrecision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

cublasOperation_t operation(Trans trans) { return trans == Trans::no ? CUBLAS_OP_N : CUBLAS_OP_T; }

}  // namespace

HalfProducts half_products(DType type) {
  return is_half(type) ? HalfProducts::cublas : HalfProducts::emulated;
}

bool has_native_tf32() { return true; }

bool detail::multiplies_faster(DType, Trans, Size) { return true; }

/// Row-major C = op(A) op(B) is column-major C^T = op(B)^T op(A)^T.
void detail::multiply(const LibraryProduct& p, const void* a, const void* b, void* c) {
  const auto run = [&](auto alpha, auto beta) {
    if (p.batch.count > 1)
      return check(cublasGemmStridedBatchedEx_64(
                       handle(), operation(p.trans_b), operation(p.trans_a), p.n, p.m, p.k, &alpha,
                       b, type_of(p.operands), p.ldb, p.batch.b, a, type_of(p.operands), p.lda,
                       p.batch.a, &beta, c, type_of(p.result), p.ldc, p.batch.c, p.batch.count,
                       sums_of(p), CUBLAS_GEMM_DEFAULT),
                   "cublasGemmStridedBatchedEx");
    check(cublasGemmEx_64(handle(), operation(p.trans_b), operation(p.trans_a), p.n, p.m, p.k,
                          &alpha, b, type_of(p.operands), p.ldb, a, type_of(p.operands), p.lda,
                          &beta, c, type_of(p.result), p.ldc, sums_of(p), CUBLAS_GEMM_DEFAULT),
          "cublasGemmEx");
  };
  if (p.operands == DType::float64)
    run(1.0, p.beta);
  else
    run(1.0F, static_cast<float>(p.beta));
}

}  // namespace tessera
