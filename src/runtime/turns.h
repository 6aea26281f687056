// SPDX-License-Identifier: Apache-2.0
/*!
 * \file turns.h
 * \brief Calls that take turns, also where a process is forked amid one.
 */
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace uir::runtime {

/*! \brief How often this process was forked from another one, since that loaded this library. */
uint64_t Forks();

/*!
 * \brief A mutex for what lasts as long as a call.
 *
 * A forked process has none of the threads of the one that it comes from: what another thread held there nobody would
 * give back. So it is free in the child, whoever held it; what a call had begun may be half done then, and who takes
 * turns asks `Forks` whether to begin anew.
 */
class Turns {
 public:
  Turns();
  ~Turns();

  std::unique_lock<std::mutex> Begin();

 private:
  struct Gate {
    uint64_t forks;
    std::mutex mutex;
  };
  std::atomic<Gate*> gate_;
};

}  // namespace uir::runtime
