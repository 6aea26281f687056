// SPDX-License-Identifier: Apache-2.0
// What a launch on a device with pipes found, counted and would have taken there, as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "device/engine/findings.h"

namespace uir::engine {

/*! \brief What a pipe of a core did. */
struct PipeUse {
  double busy{0};
  int64_t instructions{0};
  int64_t bytes{0};
};

/*! \brief One instruction on the timeline, in cycles. */
struct Moment {
  uint32_t core;
  uint32_t pipe;
  std::string name;
  int line;
  double start;
  double end;
};

/*! \brief What the cores of a launch spent, in cycles. */
struct Spent {
  /*! \brief 0: the launch counts no time. */
  double clock_hz{0};
  uint32_t pipes{0};
  const char* (*pipe_name)(uint32_t pipe){nullptr};
  /*! \brief Of each core, an element for each pipe. */
  std::vector<const PipeUse*> cores;
  /*! \brief When the last core ends. */
  double end{0};
  /*! \brief What the bytes that all cores moved take of the memory's whole bandwidth. */
  double memory{0};
  double memory_bytes{0};
  /*! \brief What a launch costs before its first instruction. */
  double start{0};
  /*! \brief Null: without the timeline. */
  const std::vector<Moment>* timeline{nullptr};
};

/*! \brief Modelled time and use of the pipes. */
std::string ModelledJson(const Spent& spent);

/*! \brief Lines of a finding's sites: in the kernel, in the function that it calls there, of the other side. */
struct Lines {
  int64_t line{-1};
  int64_t inner{-1};
  int64_t other{-1};
};

std::string FindingJson(const Finding& finding, const std::string& kernel, const Lines& lines);

/*! \brief How a launch dealt with values. */
struct ValueUse {
  /*! \brief Instructions took effect. */
  bool computed{true};
  /*! \brief Scalar code accessed memory, so that the time may depend on what lies there. */
  bool looked{false};
};

/*! \brief All that a launch answers; findings and `modelled` (empty: none) are JSON. */
std::string ResultJson(const std::string& error, const std::string& kernel, double seconds, const ValueUse& values,
                       const std::vector<std::string>& findings, const std::map<std::string, int64_t>& counters,
                       const std::string& modelled);

}  // namespace uir::engine
