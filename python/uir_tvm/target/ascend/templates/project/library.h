// SPDX-License-Identifier: Apache-2.0
// Operators of the library (aclnn), queued on the device's stream. Operands may be views of any strides.
#ifndef PROJECT_LIBRARY_H_
#define PROJECT_LIBRARY_H_

#include <cstdint>
#include <vector>

#include "device.h"

namespace project {

/*! out = a @ b; two to six dimensions, of which all but the last two are a batch that broadcasts. */
void Matmul(Device& device, const View& a, const View& b, const View& out);

/*! out = term + a @ b; matrices, and a term that broadcasts to out. */
void Addmm(Device& device, const View& term, const View& a, const View& b, const View& out);

/*! out = term + a @ b; batches of matrices (three dimensions), and a term that broadcasts to out. */
void Baddbmm(Device& device, const View& term, const View& a, const View& b, const View& out);

/*! out = scale * (a @ transposed b), of int8 into int32; matrices, and a scale of one float (quant_matmul.cpp). */
void QuantMatmul(Device& device, const View& a, const View& b, const View& scale, const View& out);

/*! A convolution's parameters, of rows and of columns. */
struct Window {
  std::vector<int64_t> stride;
  std::vector<int64_t> padding;
  std::vector<int64_t> dilation;
  int64_t groups;
};

/*! out = convolution of x with weight, plus bias (null: none), in NCHW. */
void Convolution(Device& device, const View& x, const View& weight, const View* bias, const Window& window,
                 const View& out);

}  // namespace project

#endif  // PROJECT_LIBRARY_H_
