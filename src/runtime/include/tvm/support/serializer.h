// SPDX-License-Identifier: Apache-2.0
// Stands for a header that TVM's wheel does not ship: its header of executables says how they are written to streams.
#pragma once

namespace tvm {
namespace support {

template <typename T>
struct Serializer;

}  // namespace support
}  // namespace tvm
