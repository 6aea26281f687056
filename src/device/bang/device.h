// SPDX-License-Identifier: Apache-2.0
// Sizes and costs of the modelled device, from the JSON of a launch.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "device/bang/include/uir_bang/abi.h"

namespace uir::bang {

/*! \brief What a queue costs beside its instructions' own time, in cycles. */
struct PipeCost {
  double bytes_per_cycle{0};
  double start{0};
  double head{0};
  double row{0};
};

struct Device {
  // What an MLU370 has, where the launch says nothing else.
  int64_t arch{372};
  int64_t clusters{4};
  int64_t cores_per_cluster{4};
  std::array<uint64_t, kBangMemories> bytes{0, 768 * 1024, 1024 * 1024, 4096 * 1024, 16 << 20};

  /*! \brief Whether time is counted; else all costs are 0. */
  bool timed{false};
  double clock_hz{1};
  double memory_bytes_per_cycle{0};   // of all cores together
  double cluster_bytes_per_cycle{0};  // most that one cluster gets of it
  double vector_bytes_per_cycle{128};
  double matmul_half{0};  // operations of one core in a cycle
  double matmul_float{0};
  double kernel_cycles{0};
  double scalar_cycles{0};
  double scalar_dram_cycles{0};
  double sync_cycles{0};
  double cluster_sync_cycles{0};
  double access_bytes{0};
  double start{0};  // of a vector instruction
  std::array<PipeCost, kBangPipes> pipes{};
  std::map<std::string, double> passes;
  double default_pass{1};

  int64_t cores() const { return clusters * cores_per_cluster; }
  /*! \brief Cycles that a function on so many bytes takes. */
  double CyclesOf(const std::string& function, int64_t bytes) const;
};

/*! \brief Read the JSON of a launch; what is wrong with it, or empty. */
std::string ReadDevice(const char* json, Device* device);

/*! \brief Names as findings and figures write them. */
const char* PipeName(uint32_t pipe);
const char* MemoryName(uint32_t memory);
int64_t TypeBytes(uint32_t type);

}  // namespace uir::bang
