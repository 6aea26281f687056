// SPDX-License-Identifier: Apache-2.0
// The epilogue of products, for vectors of kLanes floats. No guard: what includes this does so for every width, in a
// namespace and for instructions of its own.

#include "library/vector_math.h"

UIR_INLINE void Silu(Vector& x) {
  Vector gate = x;
  Sigmoid(gate);
  x *= gate;
}

UIR_INLINE void GeluErf(Vector& x) {
  Vector root = x * 0.70710678118654752f;
  Erf(root);
  x = 0.5f * x * (1.0f + root);
}

UIR_INLINE void Gelu(Vector& x) {
  Vector inner = 0.79788456080286535588f * (x + 0.044715f * x * x * x);
  Tanh(inner);
  x = 0.5f * x * (1.0f + inner);
}

UIR_INLINE void Activated(const Epilogue& epilogue, Vector& x) {
  switch (epilogue.activation) {
    case Activation::kNone:
      return;
    case Activation::kRelu:
      x = x < 0.0f ? Vector{} : x;  // keeps NaN
      return;
    case Activation::kSilu:
      return Silu(x);
    case Activation::kGeluTanh:
      return Gelu(x);
    case Activation::kTanh:
      return Tanh(x);
    case Activation::kSigmoid:
      return Sigmoid(x);
    case Activation::kGeluErf:
      return GeluErf(x);
    case Activation::kLeakyRelu:
    case Activation::kClip:
    case Activation::kHardSigmoid:
    case Activation::kHardSwish:
      for (int lane = 0; lane < kLanes; ++lane) x[lane] = Activate(epilogue, static_cast<float>(x[lane]));
      return;
  }
}

/*! The epilogue of a row of some columns from `first` on, and its store. */
template <int kVectors>
UIR_INLINE void Store(const MatmulAttrs& attrs, const Operands& at, int64_t row, int64_t first, const Vector* sums) {
  const Epilogue& epilogue = attrs.epilogue;
  for (int v = 0; v < kVectors; ++v) {
    const int64_t column = first + v * kLanes, count = attrs.n - column;
    if (count <= 0) return;
    const int64_t place = row * at.out_row + column * at.out_column;
    Vector x = sums[v] * static_cast<float>(epilogue.alpha), other = {};
    if (at.bias) {
      Get(other, at.bias + column, count);
      x += other;
    }
    if (at.residual) {
      if (at.out_column == 1) {
        Get(other, at.residual + place, count);
      } else {
        for (int64_t lane = 0; lane < std::min<int64_t>(count, kLanes); ++lane) {
          other[lane] = at.residual[place + lane * at.out_column];
        }
      }
    }
    if (epilogue.residual == Residual::kBeforeActivation) x += other;
    Activated(epilogue, x);
    if (epilogue.residual == Residual::kAfterActivation) x += other;
    if (at.out_column == 1) {
      Put(at.out + place, x, count);
    } else {
      for (int64_t lane = 0; lane < std::min<int64_t>(count, kLanes); ++lane) {
        at.out[place + lane * at.out_column] = x[lane];
      }
    }
  }
}
