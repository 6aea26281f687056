// SPDX-License-Identifier: Apache-2.0
// What the launch of any device with pipes has: a kernel with its arguments, findings, counts, a time limit.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/engine/fiber.h"
#include "device/engine/findings.h"
#include "device/engine/kernel_call.h"
#include "device/engine/result.h"

namespace uir::engine {

/*! \brief The state of one launch that does not depend on the device. */
struct LaunchState {
  std::string kernel_name;
  const Module* module{nullptr};
  void* kernel{nullptr};
  std::vector<uint64_t> args;
  std::vector<ParameterRange> parameters;

  FiberContext scheduler;
  FiberStacks stacks;
  bool aborted{false};
  /*! \brief Whether instructions take effect; else they take their time alone, until scalar code looks at memory. */
  bool values{true};
  /*! \brief Scalar code did. A launch without values has ended there, and is to run anew with them. */
  bool looked{false};

  double memory_bytes{0};  // moved to and from global memory
  std::unique_ptr<Findings> findings;
  std::map<std::string, int64_t> counters;
  bool timeline{false};
  std::vector<Moment> moments;

  /*! \brief Leave nothing of the launch before; at most 16 findings where the launch says nothing else. */
  void ResetLaunch(const char* name, int32_t max_findings, bool with_values);
  /*! \brief Find the kernel of that name in a library; what went wrong, or empty. */
  std::string FindKernel(const char* library);
  /*! \brief Give the launch the arguments that were added; it ends when it has run for `max_seconds` (0: never). */
  void Take(const Arguments& arguments, double max_seconds, bool with_timeline);
  /*! \brief Whether the launch has run too long; looks at the clock now and then. */
  bool Late();
  /*! \brief All that the launch answers. */
  std::string Answer(const std::string& error, std::chrono::steady_clock::time_point begin,
                     const std::string& modelled) const;

 private:
  bool has_deadline_{false};
  std::chrono::steady_clock::time_point deadline_;
  uint32_t until_check_{0};
};

}  // namespace uir::engine
