// SPDX-License-Identifier: Apache-2.0
// The state of one launch: clusters and cores with their memories and queues; findings; counts.
//
// Each core is a fiber, which runs until it ends or waits for others of its cluster. Instructions take effect when
// they are issued; whether that order is the program's or luck is judged by the clocks of the queues (engine/pipes.h).
// Launches run one at a time, so this state is one global object.
//
// The memories of a core or cluster are sections of the kernel's library: whoever runs has its bytes there, those of
// the others of its cluster are kept aside. Clusters run one after the other.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/bang/device.h"
#include "device/bang/include/uir_bang/abi.h"
#include "device/engine/bandwidth.h"
#include "device/engine/fiber.h"
#include "device/engine/findings.h"
#include "device/engine/known.h"
#include "device/engine/launch_state.h"
#include "device/engine/lines.h"
#include "device/engine/memory.h"
#include "device/engine/numbers.h"
#include "device/engine/pipe_race.h"
#include "device/engine/pipes.h"
#include "device/engine/ranges.h"
#include "device/engine/result.h"
#include "device/engine/sections.h"

namespace uir::bang {

using engine::AllKnown;
using engine::Range;
using engine::Ranges;
using engine::SetKnown;

/*! \brief What the memory core of a cluster is as `coreId`. */
constexpr int64_t kMemoryCore = 0x80;

/*! \brief A memory of a core or cluster, as large as the section that the text declares of it. */
struct LocalMemory {
  engine::Section section;
  std::unique_ptr<uint8_t[]> aside;  // its bytes while another one runs
  std::unique_ptr<uint8_t[]> known;  // all ones in bytes that hold a value that somebody wrote
  engine::PipeShadow race;

  void Create(const engine::Section& of);
  /*! \brief Put its bytes into the section, and take them out again. */
  void Enter();
  void Leave();
};

/*! \brief What a core meets others in. */
enum class Meeting { kNone, kCluster, kAllIpu };

struct Cluster {
  LocalMemory sram;
  /*! \brief Cores that have come to a meeting, and what they know. */
  std::map<Meeting, std::vector<std::pair<size_t, engine::Pipes::Known>>> met;
};

struct Core {
  Core(uint32_t index, uint32_t cores) : pipes(index, cores) {}

  bool memory_core{false};
  int64_t group{0};  // task of a Block launch, cluster of a Union launch
  int64_t lane{0};   // which core of its group
  std::array<int64_t, 3> task{};
  engine::Pipes pipes;
  LocalMemory nram;
  LocalMemory wram;
  LocalMemory ldram;
  std::array<engine::PipeUse, kBangPipes> use{};
  engine::Bandwidth bandwidth;
  /*! \brief Copies between global memory and SRAM that it came to: by line, how often. */
  std::map<int, int64_t> cluster_copies;

  engine::FiberContext fiber;
  size_t stack{0};
  bool done{false};
  Meeting waiting{Meeting::kNone};
  bool may_go{false};
  int wait_line{0};

  std::string Name() const { return memory_core ? "mpu" : "ipu" + std::to_string(lane); }
};

struct Machine : engine::LaunchState {
  Device device;
  std::array<engine::Section, kBangMemories> sections;
  engine::Section constants;  // what the compiler keeps of the text itself
  bool launched{false};

  // Of the kernel that runs.
  std::array<int64_t, 3> dim{1, 1, 1};
  int64_t units{1};   // IPU cores of a group
  int64_t groups{1};  // of the launch
  std::vector<std::unique_ptr<Core>> cores;
  std::vector<Cluster> clusters;
  Core* core{nullptr};

  std::unordered_map<engine::Allocation*, engine::PipeShadow> global;
  double end{0};                                  // of all kernels of the launch
  std::vector<std::vector<engine::PipeUse>> use;  // of each physical core

  bool union_launch() const { return units > 1; }
  /*! \brief The memory of the running core or its cluster; null where it has none. */
  LocalMemory* MemoryOf(uint32_t memory);
  /*! \brief The memory in which an address lies; kBangMemories: in none. */
  uint32_t Where(const void* address) const;
};

extern Machine machine;

/*! \brief A fault of the running core. */
engine::Finding FindingAt(const char* kind, std::string what, uint32_t memory, uint32_t pipe, int line);
void Report(engine::Finding finding);
/*! \brief The other side of a finding: the instruction of an epoch. */
void SetOther(engine::Finding* finding, uint64_t epoch);
/*! \brief Report and end the launch: the running core never goes on. */
[[noreturn]] void Fail(engine::Finding finding);
/*! \brief Scalar code is about to access memory: a launch of times alone ends here, to run anew with values. */
void NeedValues();
/*! \brief End a launch that takes too long; asked for by all that a kernel can do without end. */
void CheckDeadline(int line);

/*! \brief Run the kernel with the shape that the machine holds; findings and counts are in `machine`. */
void RunCores();
/*! \brief The running core sleeps until others let it go on. */
void WaitForOthers();

/*! \brief Modelled time and use of the queues, as JSON. */
std::string ModelledJson();

}  // namespace uir::bang
