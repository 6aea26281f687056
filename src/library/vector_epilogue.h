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

template <Activation kActivation>
UIR_INLINE void Apply(const Epilogue& epilogue, Vector& x) {
  if constexpr (kActivation == Activation::kRelu) {
    x = x < 0.0f ? Vector{} : x;  // keeps NaN
  } else if constexpr (kActivation == Activation::kSilu) {
    Silu(x);
  } else if constexpr (kActivation == Activation::kGeluTanh) {
    Gelu(x);
  } else if constexpr (kActivation == Activation::kTanh) {
    Tanh(x);
  } else if constexpr (kActivation == Activation::kSigmoid) {
    Sigmoid(x);
  } else if constexpr (kActivation == Activation::kGeluErf) {
    GeluErf(x);
  } else if constexpr (kActivation != Activation::kNone) {  // of those with parameters
    for (int lane = 0; lane < kLanes; ++lane) x[lane] = Activate(epilogue, static_cast<float>(x[lane]));
  }
}

UIR_INLINE void Activated(const Epilogue& epilogue, Vector& x) {
  switch (epilogue.activation) {
    case Activation::kNone:
      return;
    case Activation::kRelu:
      return Apply<Activation::kRelu>(epilogue, x);
    case Activation::kSilu:
      return Apply<Activation::kSilu>(epilogue, x);
    case Activation::kGeluTanh:
      return Apply<Activation::kGeluTanh>(epilogue, x);
    case Activation::kTanh:
      return Apply<Activation::kTanh>(epilogue, x);
    case Activation::kSigmoid:
      return Apply<Activation::kSigmoid>(epilogue, x);
    case Activation::kGeluErf:
      return Apply<Activation::kGeluErf>(epilogue, x);
    case Activation::kLeakyRelu:
    case Activation::kClip:
    case Activation::kHardSigmoid:
    case Activation::kHardSwish:
      return Apply<Activation::kHardSwish>(epilogue, x);  // which asks the epilogue
  }
}

/*! The epilogue of a row of some of the columns, from `first` on, and its store; `activate` is its activation. */
template <int kVectors, typename Activate>
UIR_INLINE void Store(const Epilogue& epilogue, int64_t columns, const Operands& at, int64_t row, int64_t first,
                      const Vector* sums, const Activate& activate) {
  for (int v = 0; v < kVectors; ++v) {
    const int64_t column = first + v * kLanes, count = columns - column;
    if (count <= 0) return;
    const int64_t place = row * at.out_row + column * at.out_column;
    Vector other = {};
    if (at.bias) Get(other, at.bias + column, count);
    Vector x = sums[v] * static_cast<float>(epilogue.alpha) + other;
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
    activate(x);
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

template <int kVectors>
UIR_INLINE void Store(const MatmulAttrs& attrs, const Operands& at, int64_t row, int64_t first, const Vector* sums) {
  const auto activate = [&](Vector& x) __attribute__((always_inline)) { Activated(attrs.epilogue, x); };
  Store<kVectors>(attrs.epilogue, attrs.n, at, row, first, sums, activate);
}
