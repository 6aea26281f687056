// SPDX-License-Identifier: Apache-2.0
// Sizes and costs of the modelled device, from the JSON of a launch.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "device/ascendc/include/uir_ascendc/abi.h"

namespace uir::ascendc {

/*! \brief Cycles of a vector function on n elements: slope * n + start. */
struct Cost {
  double slope{0};
  double start{0};
};

/*! \brief What a pipe costs beside its instructions' own time. */
struct PipeCost {
  double bytes_per_cycle{0};
  double start{0};
  double head{0};
  double head_per_block{0};
  double row{0};
};

struct Device {
  // Sizes that all chips of this kind have, where the launch says nothing else.
  std::array<uint64_t, kUirMemories> bytes{0, 192 * 1024, 512 * 1024, 64 * 1024, 64 * 1024, 128 * 1024, 1024, 7 * 1024};
  /*! \brief What a kernel may use of the UB; the vendor's functions take the rest. */
  uint64_t usable_ub{184 * 1024};

  /*! \brief Whether time is counted; else all costs are 0. */
  bool timed{false};
  double clock_hz{1};
  double memory_bytes_per_cycle{0};  // of all cores together
  uint64_t l2_bytes{0};
  double l2_read{0};
  double l2_write{0};
  double cube_operations{0};  // of one cube core in a cycle
  double kernel_cycles{0};
  double scalar_cycles{0};
  double sync_cycles{0};
  double issue_cycles{0};
  std::array<PipeCost, kUirPipes> pipes{};
  std::map<std::string, std::array<Cost, 2>> vector;  // by name; for elements of 4 and of 2 bytes
  std::map<std::string, Cost> casts;                  // "float>half"
  std::string default_function;

  /*! \brief What a function costs. */
  Cost Of(const std::string& function, uint64_t element_bytes) const;
};

/*! \brief Read the JSON of a launch; what is wrong with it, or empty. */
std::string ReadDevice(const char* json, Device* device);

/*! \brief Names as findings and figures write them. */
const char* PipeName(uint32_t pipe);
const char* MemoryName(uint32_t memory);
const char* TypeName(uint32_t type);
/*! \brief Bytes of an element; of int4, 1 for two. */
uint64_t TypeBytes(uint32_t type);

}  // namespace uir::ascendc
