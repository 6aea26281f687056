// SPDX-License-Identifier: Apache-2.0
#include "library/epilogue.h"

#include <tvm/ffi/error.h>

#include <cmath>

#include "library/onednn_api.h"

namespace uir::library {
namespace {

struct ActivationEntry {
  const char* name;
  Activation activation;
  int algorithm;
};
constexpr ActivationEntry kActivations[] = {
    {"none", Activation::kNone, dnn::kNoAlgorithm},    {"relu", Activation::kRelu, dnn::kRelu},
    {"gelu_erf", Activation::kGeluErf, dnn::kGeluErf}, {"gelu_tanh", Activation::kGeluTanh, dnn::kGeluTanh},
    {"silu", Activation::kSilu, dnn::kSilu},           {"tanh", Activation::kTanh, dnn::kTanh},
    {"sigmoid", Activation::kSigmoid, dnn::kSigmoid},
};

struct ResidualEntry {
  const char* name;
  Residual residual;
};
constexpr ResidualEntry kResiduals[] = {
    {"none", Residual::kNone},
    {"before_activation", Residual::kBeforeActivation},
    {"after_activation", Residual::kAfterActivation},
};

template <typename Entry, size_t N>
const Entry& Find(const Entry (&table)[N], const std::string& name, const char* what) {
  std::string names;
  for (const Entry& entry : table) {
    if (entry.name == name) return entry;
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  TVM_FFI_THROW(ValueError) << "Unknown " << what << " \"" << name << "\".\n  limit:  the library fuses " << names
                            << "\n  remedy: compute it in a kernel of its own "
                               "after the library operator.";
  TVM_FFI_UNREACHABLE();
}

template <typename T>
T ActivateT(Activation activation, T x) {
  switch (activation) {
    case Activation::kRelu:
      return x < T(0) ? T(0) : x;  // keeps NaN
    case Activation::kGeluErf:
      return T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752440)));
    case Activation::kGeluTanh:
      return T(0.5) * x * (T(1) + std::tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
    case Activation::kSilu:
      return x / (T(1) + std::exp(-x));
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kSigmoid:
      return T(1) / (T(1) + std::exp(-x));
    case Activation::kNone:
      break;
  }
  return x;
}

}  // namespace

Activation ActivationOf(const std::string& name) { return Find(kActivations, name, "activation").activation; }

Residual ResidualOf(const std::string& name) { return Find(kResiduals, name, "place of the residual").residual; }

int AlgorithmOf(Activation activation) {
  for (const ActivationEntry& entry : kActivations) {
    if (entry.activation == activation) return entry.algorithm;
  }
  return dnn::kNoAlgorithm;
}

double Activate(Activation activation, double x) { return ActivateT(activation, x); }
float Activate(Activation activation, float x) { return ActivateT(activation, x); }

}  // namespace uir::library
