// SPDX-License-Identifier: Apache-2.0
#include "device/engine/result.h"

#include <algorithm>

namespace uir::engine {

namespace {

std::string TimelineJson(const Spent& spent) {
  std::vector<std::string> moments;
  for (const Moment& moment : *spent.timeline) {
    moments.push_back(JsonObject()
                          .Number("core", moment.core)
                          .Text("pipe", spent.pipe_name(moment.pipe))
                          .Text("name", moment.name)
                          .Number("line", moment.line)
                          .Real("start", moment.start / spent.clock_hz)
                          .Real("end", moment.end / spent.clock_hz)
                          .Done());
  }
  return JsonList(moments);
}

}  // namespace

std::string ModelledJson(const Spent& spent) {
  if (spent.clock_hz <= 0 || spent.cores.empty()) {
    return JsonObject().Real("seconds", 0).Text("bound", "").Raw("pipes", "{}").Done();
  }
  double rate = spent.clock_hz, longest = spent.memory;
  std::string bound = "memory";
  JsonObject pipes;
  for (uint32_t pipe = 0; pipe < spent.pipes; ++pipe) {
    PipeUse all;
    double busiest = 0;
    for (const PipeUse* core : spent.cores) {
      busiest = std::max(busiest, core[pipe].busy);
      all.instructions += core[pipe].instructions;
      all.bytes += core[pipe].bytes;
    }
    if (!all.instructions) continue;
    if (busiest > longest) {
      longest = busiest;
      bound = spent.pipe_name(pipe);
    }
    pipes.Raw(spent.pipe_name(pipe), JsonObject()
                                         .Real("busy_seconds", busiest / rate)
                                         .Number("instructions", all.instructions)
                                         .Number("bytes", all.bytes)
                                         .Done());
  }
  pipes.Raw("memory", JsonObject()
                          .Real("busy_seconds", spent.memory / rate)
                          .Number("instructions", 0)
                          .Number("bytes", static_cast<int64_t>(spent.memory_bytes))
                          .Done());
  JsonObject out;
  out.Real("seconds", (std::max(spent.end, spent.memory) + spent.start) / rate)
      .Text("bound", bound)
      .Raw("pipes", pipes.Done());
  if (spent.timeline) out.Raw("timeline", TimelineJson(spent));
  return out.Done();
}

std::string FindingJson(const Finding& finding, const std::string& kernel, const Lines& lines) {
  return JsonObject()
      .Text("kind", finding.kind)
      .Text("what", finding.what)
      .Text("kernel", kernel)
      .Number("line", lines.line)
      .Number("inner_line", lines.inner)
      .Text("space", finding.space)
      .Number("block", finding.block)
      .Number("thread", finding.thread)
      .Text("core", finding.core)
      .Text("pipe", finding.pipe)
      .Number("other_line", lines.other)
      .Number("other_block", finding.other_block)
      .Number("other_thread", finding.other_thread)
      .Text("other_core", finding.other_core)
      .Text("other_pipe", finding.other_pipe)
      .Number("count", finding.count)
      .Done();
}

std::string ResultJson(const std::string& error, const std::string& kernel, double seconds, const ValueUse& values,
                       const std::vector<std::string>& findings, const std::map<std::string, int64_t>& counters,
                       const std::string& modelled) {
  JsonObject counted, result;
  for (const auto& counter : counters) counted.Number(counter.first, counter.second);
  result.Bool("ok", error.empty() && findings.empty())
      .Text("error", error)
      .Text("kernel", kernel)
      .Real("seconds", seconds)
      .Bool("computed", values.computed)
      .Bool("looked", values.looked)
      .Raw("findings", JsonList(findings))
      .Raw("counters", counted.Done());
  if (!modelled.empty()) result.Raw("modelled", modelled);
  return result.Done();
}

}  // namespace uir::engine
