// SPDX-License-Identifier: Apache-2.0
// The state of one launch: cores with their memories, pipes, flags and queues; findings; counts.
//
// Each core is a fiber, which runs until it ends or waits for another core. Instructions take effect when they are
// issued; whether that order is the program's or luck is judged by the clocks of the pipes (engine/pipes.h). Launches
// run one at a time, so this state is one global object.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/ascendc/device.h"
#include "device/ascendc/engine.h"
#include "device/ascendc/include/uir_ascendc/abi.h"
#include "device/engine/fiber.h"
#include "device/engine/findings.h"
#include "device/engine/launch_state.h"
#include "device/engine/memory.h"
#include "device/engine/pipe_race.h"
#include "device/engine/pipes.h"

namespace uir::ascendc {

/*! \brief A memory of a core. `known` has the bits of every byte that hold a value that somebody wrote. */
struct LocalMemory {
  uint64_t bytes{0};
  uint64_t taken{0};  // by buffers
  std::unique_ptr<uint8_t[]> data;
  std::unique_ptr<uint8_t[]> known;
  engine::PipeShadow race;

  void Create(uint64_t size);
};

/*! \brief A flag between two pipes. */
struct Flag {
  bool up{false};
  int set_line{0};
  engine::Pipes::Known carried;
  /*! \brief The wait that took it last; before the next set it must have happened. */
  uint64_t waited{0};
};

/*! \brief A queue of buffers. */
struct Queue {
  enum State { kFree, kAllocated, kQueued, kTaken };
  struct Buffer {
    uint64_t address;
    State state{kFree};
    bool returned{false};  // freed once: the next producer waits for its consumer
    int full_event{-1};    // ids that the queue holds while the buffer is in it, and while it is free again
    int free_event{-1};
    engine::Pipes::Known filled;
    engine::Pipes::Known emptied;
    int line{0};
  };
  uint32_t memory;
  uint32_t from;
  uint32_t to;
  int depth;
  uint64_t bytes;  // of each buffer
  std::vector<Buffer> buffers;
  std::deque<size_t> queued;
  size_t next{0};
};

struct Core {
  Core(uint32_t index, uint32_t cores) : pipes(index, cores) {}

  bool vector{true};
  int64_t block{0};        // of the launch
  int64_t sub_block{0};    // which vector core of its block
  int64_t block_index{0};  // what GetBlockIdx gives
  engine::Pipes pipes;
  std::array<LocalMemory, kUirMemories> memory;
  std::array<std::array<std::array<Flag, 8>, kUirPipes>, kUirPipes> flags;
  std::array<std::array<uint8_t, kUirPipes>, kUirPipes> events_taken{};  // by the text or the vendor's functions
  std::array<std::array<uint8_t, kUirPipes>, kUirPipes> events_own{};    // by the vendor's functions
  std::vector<Queue> queues;
  int buffers{0};
  bool pipe_object{false};
  uint64_t mask[2]{~uint64_t{0}, ~uint64_t{0}};  // low, high
  bool mask_counts{false};
  std::array<PipeUse, kUirPipes> use{};
  Bandwidth bandwidth;

  engine::FiberContext fiber;
  size_t stack{0};
  bool done{false};
  bool waiting{false};
  /*! \brief What a waiting core needs: a flag of another core, or all cores (-1). */
  int wait_flag{0};
  uint32_t wait_pipe{0};
  int wait_line{0};
  std::map<int, std::deque<engine::Pipes::Known>> arrived;  // flags of other cores, by id

  /*! \brief Kind, as findings call it. */
  std::string Name() const { return vector ? "aiv" : "aic"; }
};

/*! \brief What is known of the accesses to one allocation. */
struct GlobalShadow {
  engine::PipeShadow race;
  engine::ByteSet touched;  // lines of the second-level cache
};

struct Machine : engine::LaunchState {
  Device device;
  std::string core_kind;
  int64_t blocks{0};

  std::vector<std::unique_ptr<Core>> cores;
  Core* core{nullptr};

  /*! \brief Sets of a flag (mode, id, first core of its group) that wait for those of other cores; by core. */
  std::map<std::tuple<int, int, size_t>, std::map<size_t, std::deque<engine::Pipes::Known>>> gathering;

  std::unordered_map<engine::Allocation*, GlobalShadow> global;
  uint64_t touched_bytes{0};
};

extern Machine machine;

/*! \brief Report a fault of the running core. */
engine::Finding FindingAt(const char* kind, std::string what, uint32_t memory, uint32_t pipe, int line);
void Report(engine::Finding finding);
/*! \brief The other side of a finding: the instruction of an epoch. */
void SetOther(engine::Finding* finding, uint64_t epoch);
/*! \brief Report and end the launch: the running core never goes on. */
[[noreturn]] void Fail(engine::Finding finding);

/*! \brief Scalar code is about to read memory: a launch of times alone ends here, to run anew with values. */
void NeedValues();

/*! \brief End a launch that takes too long; asked for by all that a kernel can do without end. */
void CheckDeadline(int line);

/*! \brief Flags as the vendor's own functions use them (sync.cc): the id is theirs, and no concern of the text. */
void SetFlag(int from, int to, int id, int line);
void WaitFlag(int from, int to, int id, int line);
/*! \brief Take an event id for a vendor's function; one whose flag the text has up is a finding. */
int TakeOwnEvent(int from, int to, int line);
void ReleaseOwnEvent(int from, int to, int id, int line);

/*! \brief Run all cores; findings and counts are in `machine`. */
void RunCores();
/*! \brief The running core sleeps until what its wait_* members say is there. */
void WaitForOthers();
/*! \brief Whether what a core waits for is there (cross.cc). */
bool CanGoOn(const Core& core);

/*! \brief Modelled time and use of the pipes, as JSON (report.cc). */
std::string ModelledJson();

}  // namespace uir::ascendc
