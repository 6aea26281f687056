// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace uir::library {

enum class Activation { kNone, kRelu, kGeluErf, kGeluTanh, kSilu, kTanh, kSigmoid };
enum class Residual { kNone, kBeforeActivation, kAfterActivation };

/*! out = activation(alpha * product + bias [+ residual]) [+ residual]. */
struct Epilogue {
  double alpha = 1.0;
  bool bias = false;
  Residual residual = Residual::kNone;
  Activation activation = Activation::kNone;
};

/*! The activation called `name` in the attributes; throws ValueError with the
 * list of names. */
Activation ActivationOf(const std::string& name);

/*! Where the residual is added; throws ValueError with the list of names. */
Residual ResidualOf(const std::string& name);

/*! oneDNN's number for the activation (not for kNone). */
int AlgorithmOf(Activation activation);

/*! The activation in plain C++. */
double Activate(Activation activation, double x);
float Activate(Activation activation, float x);

/*! The whole epilogue of one element. */
template <typename T>
T Finish(const Epilogue& epilogue, T product, T bias, T residual) {
  T value = static_cast<T>(epilogue.alpha) * product + bias;
  if (epilogue.residual == Residual::kBeforeActivation) value += residual;
  if (epilogue.activation != Activation::kNone) value = Activate(epilogue.activation, value);
  if (epilogue.residual == Residual::kAfterActivation) value += residual;
  return value;
}

}  // namespace uir::library
