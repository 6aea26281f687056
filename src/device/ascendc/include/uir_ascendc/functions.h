// SPDX-License-Identifier: Apache-2.0
// Functions of several instructions, with a tensor of their own for what they compute in between.
#pragma once

#include "vector.h"

namespace AscendC {

#define UIR_FUNCTION(Name)                                                                                  \
  template <typename T, bool isReuseSource = false>                                                         \
  void Name(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,                               \
            const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount, Site at = Site::Here()) { \
    UirVector vector = uir_ascendc::Unary(#Name, dstTensor, srcTensor, uir_ascendc::Counted(calCount));     \
    vector.work = sharedTmpBuffer.uir_tensor();                                                             \
    vector.mode = isReuseSource;                                                                            \
    uir_ascendc_function(&vector, at.line());                                                               \
  }                                                                                                         \
  template <typename T, bool isReuseSource = false>                                                         \
  void Name(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,                               \
            const LocalTensor<uint8_t>& sharedTmpBuffer, Site at = Site::Here()) {                          \
    Name<T, isReuseSource>(dstTensor, srcTensor, sharedTmpBuffer, srcTensor.GetSize(), at);                 \
  }
UIR_FUNCTION(Tanh)
UIR_FUNCTION(Sin)
UIR_FUNCTION(Cos)
UIR_FUNCTION(Erf)
#undef UIR_FUNCTION

}  // namespace AscendC
