// SPDX-License-Identifier: Apache-2.0
// Operands of the stand-ins of operator libraries: views of device memory, their elements as float.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace uir_host {

/*! Types of elements; whole numbers are read alone. */
enum class Element { kFloat, kHalf, kBfloat, kInt8 };

/*! \brief Bytes of an element. */
int64_t SizeOf(Element type);

/*! \brief A view; strides and offset in elements. */
struct Strided {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  int64_t offset;
  Element type;
  char* data;
};

/*! \brief Elements of a shape. */
int64_t Count(const std::vector<int64_t>& shape);

//! \brief The elements in row-major order as float.
//! \return false where something reads bytes that nothing wrote; `message` says where.
bool Read(const Strided& tensor, std::vector<float>* values, std::string* message);

/*! \brief Rounds to the tensor's type, to nearest even, and writes its elements. */
void Write(const Strided& tensor, const std::vector<float>& values);

/*! \brief The element of a tensor of `shape`, in row-major order, that element `index` of `to` reads. */
int64_t BroadcastIndex(const std::vector<int64_t>& shape, const std::vector<int64_t>& to, int64_t index);

/*! \brief The batch that two broadcast to; false where they do not. */
bool Joined(std::vector<int64_t> a, std::vector<int64_t> b, std::vector<int64_t>* joined);

/*! \brief The products of two batches of matrices, in float: of (..., m, k) and (..., k, n) that broadcast to `out`. */
std::vector<float> Products(const std::vector<float>& left, const std::vector<int64_t>& a,
                            const std::vector<float>& right, const std::vector<int64_t>& b,
                            const std::vector<int64_t>& out);

}  // namespace uir_host
