// SPDX-License-Identifier: Apache-2.0
// Stands for a header that TVM's wheel does not ship: its header of executables names streams, and asks nothing of
// them.
#pragma once

namespace tvm {
namespace support {

class Stream;

}  // namespace support
}  // namespace tvm
