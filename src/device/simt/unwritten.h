// SPDX-License-Identifier: Apache-2.0
// Whether values of registers that nothing wrote reach memory.
//
// Registers begin with values that are known again. Data may look like them; so a launch that stored such a value is
// run again from the same memory, with registers that begin with other values: what then looks unwritten at the same
// place is no data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace uir::simt {

/*! \brief The search for such values in one launch. */
class Unwritten {
 public:
  /*! \brief Begin a launch: keep the memory that its arguments reach. */
  void Begin(const std::vector<uint64_t>& arguments);
  /*! \brief The NaN from which all that registers begin with is derived (include/uir_simt/unwritten.h). */
  uint32_t nan() const { return kNans[again_]; }
  /*! \brief Look at bytes that were stored, and note words like a register that nothing wrote; whether it is one. */
  bool Proved(uint64_t site, const uint8_t* at, uint32_t bytes);
  /*! \brief Whether the launch must run again to tell. */
  bool open() const { return !again_ && !suspects_.empty(); }
  /*! \brief Put the memory back, and begin registers with other values. */
  void Again();
  /*! \brief Whether the launch runs to tell data from unwritten registers, and for nothing else. */
  bool again() const { return again_; }
  /*! \brief Forget what was kept. */
  void End();

 private:
  static constexpr uint32_t kNans[] = {0x7fc5a5a5, 0x7fca5a5a};
  /*! \brief Words that are remembered: a kernel that stores nothing else needs no more. */
  static constexpr size_t kRemembered = 1 << 18;

  bool again_{false};
  std::set<std::pair<uint64_t, const uint8_t*>> suspects_;
  std::vector<std::pair<uint8_t*, std::vector<uint8_t>>> before_;
};

}  // namespace uir::simt
