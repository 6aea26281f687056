// SPDX-License-Identifier: Apache-2.0
// Stands for the vendor's header of this name: the types and values that exported projects use, with its numbers.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define ACL_FUNC_VISIBILITY __attribute__((visibility("default")))

typedef void* aclrtStream;
typedef void* aclrtEvent;
typedef int aclError;

static const int ACL_SUCCESS = 0;

typedef enum {
  ACL_FLOAT = 0,
  ACL_FLOAT16 = 1,
  ACL_INT8 = 2,
  ACL_INT32 = 3,
  ACL_UINT8 = 4,
  ACL_INT64 = 9,
  ACL_BOOL = 12,
  ACL_BF16 = 27,
} aclDataType;

typedef enum {
  ACL_FORMAT_NCHW = 0,
  ACL_FORMAT_ND = 2,
} aclFormat;
