// SPDX-License-Identifier: Apache-2.0
// What the stand-in of Cambricon's runtime knows: its work, and what it says of an error.
#pragma once

#include <string>

#include "cnrt.h"
#include "device/host/work.h"

namespace uir_cnrt {

using uir_host::Event;
using uir_host::Stream;

struct State : uir_host::Work {
  std::string message;
  ~State();
};

State& Runtime();

/*! \brief Keeps the message for cnrtGetErrorStr, and returns the code. */
cnrtRet_t Fail(cnrtRet_t code, const std::string& message);

/*! \brief The queue of a handle, or null after keeping a message. */
Stream* QueueOf(cnrtQueue_t handle, const char* call);

}  // namespace uir_cnrt
