// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/view.hpp>
#include <tessera/nn/activation.hpp>
#include <tessera/nn/gemm.hpp>

/// A linear layer, whole and in the pieces that a sharded layer puts a collective between.
/// Shapes: x, dx (rows, in); kernel (in, out); bias (out); z, y, dy (rows, out). `rows` may be 0.
/// T: float, double. Nothing here allocates or waits for the device.
namespace tessera {

/// y = act(z + bias). An empty bias is none. With an activation that needs it, z becomes z + bias;
/// with any other, z may be y itself (and is left alone when it is not).
template <class T>
void bias_activation(Activation activation, const Matrix<T>& z, const Vector<const T>& bias,
                     const Matrix<T>& y);

/// dy becomes dz = dy * act'(.), and its column sums become dbias, or are added to it.
/// `saved` is what forward left: z + bias if needs_preactivation(activation), else y. An empty
/// dbias is not wanted. With no rows, dbias becomes zero or stays.
template <class T>
void activation_bias_backward(Activation activation, const Matrix<const T>& saved,
                              const Matrix<T>& dy, const Vector<T>& dbias, bool accumulate);

/// y = act(x kernel + bias). z is used, and must then not be y, only if
/// needs_preactivation(activation).
template <class T>
void linear_forward(const Gemm<T>& gemm, Activation activation, const Matrix<const T>& x,
                    const Matrix<const T>& kernel, const Vector<const T>& bias, const Matrix<T>& z,
                    const Matrix<T>& y);

/// From dy, which is overwritten with dz: dkernel = x^T dz and dbias = column sums of dz, both
/// added to what they hold if `accumulate`; dx = dz kernel^T, unless dx has no memory (the input is
/// data).
template <class T>
void linear_backward(const Gemm<T>& gemm, Activation activation, const Matrix<const T>& x,
                     const Matrix<const T>& kernel, const Matrix<const T>& saved,
                     const Matrix<T>& dy, const Matrix<T>& dkernel, const Vector<T>& dbias,
                     const Matrix<T>& dx, bool accumulate);

}  // namespace tessera
