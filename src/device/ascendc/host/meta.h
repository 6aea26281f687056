// SPDX-License-Identifier: Apache-2.0
// Operands of aclnn: views of device memory, numbers, lists of numbers; elements as float.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "aclnn/acl_meta.h"
#include "device/host/strided.h"

struct aclTensor {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  int64_t offset;
  aclDataType type;
  aclFormat format;
  char* data;
};

struct aclScalar {
  double value;
};

struct aclIntArray {
  std::vector<int64_t> values;
};

namespace uir_acl {

/*! \brief Bytes of an element; 0 of a type that the stand-in does not have. */
int64_t SizeOf(aclDataType type);

using uir_host::Count;

/*! \brief Whether elements lie one after the other. */
bool Contiguous(const aclTensor& tensor);

//! \brief The elements in row-major order as float.
//! \return false where something reads bytes that nothing wrote; `message` says where.
bool Read(const aclTensor& tensor, std::vector<float>* values, std::string* message);

/*! \brief Rounds to the tensor's type, to nearest even, and writes its elements. */
void Write(const aclTensor& tensor, const std::vector<float>& values);

}  // namespace uir_acl
