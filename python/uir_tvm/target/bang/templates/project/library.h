// SPDX-License-Identifier: Apache-2.0
// The operator library of the program's device.
#ifndef PROJECT_LIBRARY_H_
#define PROJECT_LIBRARY_H_

#include <memory>

#include "cnnl_calls.h"
#include "device.h"

namespace project {

/*! The library on the device's queue, made at the first call. */
inline Library& LibraryOf(Device& device) {
  if (!device.attached) device.attached = std::make_shared<Library>(device.queue());
  return *static_cast<Library*>(device.attached.get());
}

}  // namespace project

#endif  // PROJECT_LIBRARY_H_
