// SPDX-License-Identifier: Apache-2.0
// The state of one launch: lanes, warps, blocks, the shared pool, findings.
//
// Every lane is a fiber. Lanes run one after the other until each waits for others; then those that are complete
// meet (meeting.cc) and go on. Launches run one at a time, so this state is one global object.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/engine/clocks.h"
#include "device/engine/fiber.h"
#include "device/engine/findings.h"
#include "device/engine/kernel_call.h"
#include "device/engine/lines.h"
#include "device/engine/memory.h"
#include "device/simt/counters.h"
#include "device/simt/unwritten.h"
#include "device/simt/warp_trace.h"
#include "device/simt/warpgroup.h"

namespace uir::simt {

constexpr uint32_t kWarp = 32;
constexpr uint32_t kMaxThreads = 1024;
constexpr size_t kPoolBytes = 1 << 20;

/*! \brief What a lane waits for. */
enum class Wait : uint8_t {
  kNone,
  kShuffle,
  kVote,
  kReduce,
  kMatch,
  kSyncwarp,
  kMma,
  kLdmatrix,
  kBarrier,
  kGrid,
  kMbarrier,
  kWgmma
};

/*! \brief One asynchronous copy that was issued and not yet waited for. */
struct AsyncCopy {
  size_t shared;  // offset in the pool
  const uint8_t* global;
  uint32_t bytes;
  uint32_t valid;  // bytes that are copied; the others become zero
  uint64_t site;
};

/*! \brief Operands of a call that other lanes look at while this lane waits. */
struct Arrival {
  Wait wait{Wait::kNone};
  int kind{0};  // which shuffle, vote, mma, ...; the id of a barrier
  uint32_t mask{0};
  uint64_t site{0};
  uint64_t value{0};
  uint64_t value_a{0};
  int32_t argument{0};
  int32_t width{0};
  void* d{nullptr};
  const void* a{nullptr};
  const void* b{nullptr};
};

struct Lane {
  engine::FiberContext fiber;
  uint32_t thread{0};
  bool done{false};
  Arrival arrival;
  uint64_t result{0};
  std::vector<AsyncCopy> open;                    // not committed
  std::vector<std::vector<AsyncCopy>> committed;  // oldest first
  Products products;                              // that this lane has a part of
  uint32_t fences{0};                             // between the generic and the asynchronous proxy
  uint32_t init_fences{0};                        // those of barrier objects that were initialised
};

/*! \brief A barrier object in shared memory. */
struct Mbarrier {
  int count{0};
  int pending{0};  // arrivals that the phase still needs
  int64_t expected_bytes{0};
  int64_t issued_bytes{0};
  uint32_t phase{0};
  uint32_t made_by{0};  // the thread that initialised it, and how many fences that had passed before
  uint32_t made_after{0};
  std::vector<AsyncCopy> copies;
  std::vector<uint32_t> issuers;
  std::vector<engine::Shared<engine::Clocks::Record>> arrived;
  std::vector<engine::Shared<engine::Clocks::Record>> completed;  // of the phase before
};

/*! \brief A part of the pool that the text named. */
struct SharedRange {
  size_t begin, end;
};

struct Block {
  explicit Block(uint32_t threads) : lanes(threads), clocks(threads) {}
  uint32_t index{0};
  size_t first_stack{0};
  std::vector<Lane> lanes;
  engine::Clocks clocks;
  // Shared memory: its bytes while another block runs, and what is known of them.
  std::vector<uint8_t> kept;
  engine::ByteSet written;
  engine::ByteSet in_flight;
  size_t in_flight_bytes{0};
  engine::RaceShadow race;
  std::vector<SharedRange> ranges;
  std::map<size_t, Mbarrier> mbarriers;
  std::vector<ChunkState> chunks;  // of 16 bytes
  uint32_t live{0};
};

/*! \brief One launch in progress. */
struct Machine {
  // Where the kernel is and what it gets.
  void* kernel{nullptr};
  std::vector<uint64_t> args;
  std::vector<engine::ParameterRange> parameters;
  std::string kernel_name;
  uintptr_t module_begin{0};
  uintptr_t module_end{0};
  uint32_t grid{0};
  uint32_t threads{0};
  size_t shared_bytes{0};
  bool cooperative{false};
  int shared_shift{engine::RaceShadow::kWidestShift};  // of the last block's accesses to shared memory
  uint32_t generation{0};                              // of global memory: one for each launch and barrier of the grid

  // What runs.
  Block* block{nullptr};
  Lane* lane{nullptr};
  engine::FiberContext scheduler;
  engine::FiberStacks stacks;
  bool aborted{false};
  bool grid_waiting{false};

  // The last plain write of the running lane, looked at when its value is there: at the next access.
  const uint8_t* pending_write{nullptr};
  uint32_t pending_bytes{0};
  uint64_t pending_site{0};

  Unwritten unwritten;
  std::unique_ptr<engine::Findings> findings;
  Counters counters;
  WarpTrace trace;
  bool has_products{false};  // of four warps: the kernel has begun one
  std::chrono::steady_clock::time_point deadline;
  bool has_deadline{false};

  uint32_t LaneOf() const { return lane->thread % kWarp; }
  engine::Accessor Me(uint64_t site, uint32_t of_generation) const {
    return {&block->clocks, lane->thread, block->index, of_generation, Offset(site)};
  }
  uint32_t Offset(uint64_t site) const { return static_cast<uint32_t>(site - module_begin); }
};

extern Machine machine;

/*! \brief Report a fault of the running lane; `site` is where it is in the text. */
engine::Finding FindingAt(const char* kind, std::string what, const char* space, uint64_t site);
void Report(engine::Finding finding);
/*! \brief Report and end the launch: the running lane never goes on. */
[[noreturn]] void Fail(engine::Finding finding);
/*! \brief End the launch from the scheduler. */
void Abort();

/*! \brief Put the running lane to sleep until what it waits for is there; gives the result that was left for it. */
uint64_t WaitFor(Arrival arrival);
/*! \brief Let the other lanes of the warp catch up. */
void YieldLane();

/*! \brief Run all blocks; findings and counters are in `machine`. */
void RunGrid();
/*! \brief Look at the last write for values of registers that nothing wrote. */
void CheckPendingWrite();

/*! \brief Lanes of a warp that wait for each other and are complete meet; whether any did (meeting.cc). */
bool MeetInWarp(Block* block, uint32_t warp);
/*! \brief The same for barriers of a block. */
bool MeetInBlock(Block* block);
/*! \brief Report the first lane that waits for something that cannot come. */
void ReportStuck(Block* block);

/*! \brief Check an access of the running lane, and note it (access.cc).  */
void CheckAccess(const void* address, uint32_t bytes, bool write, bool atomic, uint64_t site);

//! \brief The same of bytes that an engine reads for a lane (a product of four warps, a bulk copy's barrier object):
//! bounds, races and what was written; no access of the lane is noted.
void CheckEngineRead(size_t offset, uint32_t bytes, uint64_t site);

/*! \brief Finish asynchronous copies; those of lanes (`generic`) write as plain stores do (async.cc). */
void CompleteCopies(const std::vector<AsyncCopy>& copies, uint32_t thread, bool generic);
/*! \brief Let a lane whose barrier object completed its phase go on; whether any did. */
bool MeetAtMbarriers(Block* block);

/*! \brief Compute what the lanes of a warp asked their tensor core for (tensor_core.cc). */
void ComputeMma(int kind, Lane* lanes);
void LoadMatrices(int matrices, bool transposed, Block* block, uint32_t warp);
/*! \brief An element of a factor in a register of a kind of product. */
double FactorAt(int kind, uint32_t reg, int element);

/*! \brief Warps in fours that all ask for a product start it; whether any did (warpgroup.cc). */
bool MeetInWarpgroup(Block* block);
/*! \brief Check an access of the running lane to its own registers against products in flight. */
void CheckRegisters(uintptr_t at, uint32_t bytes, bool write, uint64_t site);

}  // namespace uir::simt
