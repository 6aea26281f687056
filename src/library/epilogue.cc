// SPDX-License-Identifier: Apache-2.0
#include "library/epilogue.h"

#include <tvm/ffi/error.h>

#include <cmath>
#include <cstdlib>

#include "library/onednn_api.h"

namespace uir::library {
namespace {

struct ActivationEntry {
  const char* name;
  Activation activation;
  int algorithm;
  size_t parameters = 0;
};
constexpr ActivationEntry kActivations[] = {
    {"none", Activation::kNone, dnn::kNoAlgorithm},
    {"relu", Activation::kRelu, dnn::kRelu},
    {"gelu_erf", Activation::kGeluErf, dnn::kGeluErf},
    {"gelu_tanh", Activation::kGeluTanh, dnn::kGeluTanh},
    {"silu", Activation::kSilu, dnn::kSilu},
    {"tanh", Activation::kTanh, dnn::kTanh},
    {"sigmoid", Activation::kSigmoid, dnn::kSigmoid},
    {"leaky_relu", Activation::kLeakyRelu, dnn::kRelu, 1},
    {"clip", Activation::kClip, dnn::kClip, 2},
    {"hard_sigmoid", Activation::kHardSigmoid, dnn::kHardSigmoid, 2},
    {"hard_swish", Activation::kHardSwish, dnn::kHardSwish, 2},
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

/*! Between two bounds; keeps NaN. */
template <typename T>
T Between(T low, T high, T x) {
  return x < low ? low : x > high ? high : x;
}

template <typename T>
T ActivateT(const Epilogue& epilogue, T x) {
  const T first = static_cast<T>(epilogue.parameters[0]), second = static_cast<T>(epilogue.parameters[1]);
  switch (epilogue.activation) {
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
    case Activation::kLeakyRelu:
      return x < T(0) ? first * x : x;
    case Activation::kClip:
      return Between(first, second, x);
    case Activation::kHardSigmoid:
      return Between(T(0), T(1), first * x + second);
    case Activation::kHardSwish:
      return x * Between(T(0), T(1), first * x + second);
    case Activation::kNone:
      break;
  }
  return x;
}

}  // namespace

void SetActivation(const std::string& text, Epilogue* epilogue) {
  const size_t open = text.find('(');
  const ActivationEntry& entry = Find(kActivations, text.substr(0, open), "activation");
  size_t count = 0;
  const char* at = open == std::string::npos ? "" : text.c_str() + open;
  for (char before = '('; *at == before && count < 2; before = ',') {
    char* end = nullptr;
    const float parameter = std::strtof(at + 1, &end);
    if (end == at + 1) break;
    epilogue->parameters[count++] = parameter;
    at = end;
  }
  const bool closed = count == 0 ? *at == 0 : std::string(at) == ")";
  if (count != entry.parameters || !closed) {
    TVM_FFI_THROW(ValueError) << "Activation \"" << text << "\".\n  need:   " << entry.name << " with "
                              << entry.parameters << " parameters\n  remedy: write "
                              << (entry.parameters == 0   ? "the name alone"
                                  : entry.parameters == 1 ? "name(0.1)"
                                                          : "name(0,6)");
  }
  epilogue->activation = entry.activation;
}

Residual ResidualOf(const std::string& name) { return Find(kResiduals, name, "place of the residual").residual; }

int AlgorithmOf(Activation activation) {
  for (const ActivationEntry& entry : kActivations) {
    if (entry.activation == activation) return entry.algorithm;
  }
  return dnn::kNoAlgorithm;
}

double Activate(const Epilogue& epilogue, double x) { return ActivateT(epilogue, x); }
float Activate(const Epilogue& epilogue, float x) { return ActivateT(epilogue, x); }

}  // namespace uir::library
