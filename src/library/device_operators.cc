// SPDX-License-Identifier: Apache-2.0
#include "library/device_operators.h"

namespace uir::library {

void CheckSizes(const MatmulAttrs& attrs, const Arguments& in, const char* op) {
  const int64_t out_elements = Extent(attrs.out, attrs.batch, attrs.m, attrs.n);
  CheckElements(in.first, Extent(attrs.a, attrs.batch, attrs.m, attrs.k), false, op, "1");
  CheckElements(in.second, Extent(attrs.b, attrs.batch, attrs.k, attrs.n), false, op, "2");
  CheckElements(in.out, out_elements, false, op, "out");
  if (in.bias) CheckElements(in.bias, attrs.n, true, op, "bias");
  if (in.residual) CheckElements(in.residual, out_elements, false, op, "residual");
}

void CheckSizes(const Conv2dAttrs& attrs, const Arguments& in, const char* op) {
  CheckElements(in.first, Count({attrs.n, attrs.c, attrs.h, attrs.w}), true, op, "1");
  CheckElements(in.second, attrs.o * attrs.i * attrs.kh * attrs.kw, true, op, "2");
  CheckElements(in.out, Count({attrs.n, attrs.o, attrs.oh, attrs.ow}), true, op, "out");
  if (in.bias) CheckElements(in.bias, attrs.o, true, op, "bias");
}

}  // namespace uir::library
