// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace uir::library {

/*! Those of the second row have parameters. */
enum class Activation {
  kNone,
  kRelu,
  kGeluErf,
  kGeluTanh,
  kSilu,
  kTanh,
  kSigmoid,
  kLeakyRelu,    // x < 0 ? slope * x : x
  kClip,         // between low and high
  kHardSigmoid,  // factor * x + term between 0 and 1
  kHardSwish,    // x times that
};
enum class Residual { kNone, kBeforeActivation, kAfterActivation };

/*! out = activation(alpha * product + bias [+ residual]) [+ residual]. */
struct Epilogue {
  double alpha = 1.0;
  bool bias = false;
  Residual residual = Residual::kNone;
  Activation activation = Activation::kNone;
  float parameters[2] = {0.0f, 0.0f};  // of the activation
};

/*! Write the activation that a text of the attributes says, a name or name(parameter, ...), into the epilogue;
 * throws ValueError with the list of names. */
void SetActivation(const std::string& text, Epilogue* epilogue);

/*! Where the residual is added; throws ValueError with the list of names. */
Residual ResidualOf(const std::string& name);

/*! oneDNN's number for the activation (not for kNone). */
int AlgorithmOf(Activation activation);

/*! The activation of an epilogue in plain C++. */
double Activate(const Epilogue& epilogue, double x);
float Activate(const Epilogue& epilogue, float x);

/*! The whole epilogue of one element. */
template <typename T>
T Finish(const Epilogue& epilogue, T product, T bias, T residual) {
  T value = static_cast<T>(epilogue.alpha) * product + bias;
  if (epilogue.residual == Residual::kBeforeActivation) value += residual;
  if (epilogue.activation != Activation::kNone) value = Activate(epilogue, value);
  if (epilogue.residual == Residual::kAfterActivation) value += residual;
  return value;
}

}  // namespace uir::library
