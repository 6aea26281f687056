// SPDX-License-Identifier: Apache-2.0
// From an address of compiled code to the line of the text, by binutils' addr2line. Without it lines are -1.
#include "device/engine/lines.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

extern char** environ;

namespace uir::engine {

namespace {

struct Source {
  std::string library;
  std::string text;
  uintptr_t base{0};
  std::unordered_map<uint64_t, Line> known;
};

Source& Current() {
  static Source source;
  return source;
}

/*! \brief What a program prints; empty when it cannot be run. */
std::string Output(const std::vector<std::string>& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child;
  int failed = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string out;
  if (!failed) {
    char buffer[4096];
    for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) out.append(buffer, static_cast<size_t>(n));
    waitpid(child, nullptr, 0);
  }
  close(ends[0]);
  return out;
}

}  // namespace

void SetLineSource(const std::string& library, uintptr_t base, const std::string& suffix) {
  Source& source = Current();
  if (source.library == library && source.base == base) return;
  source.text = suffix + ":";
  source.library = library;
  source.base = base;
  source.known.clear();
}

Line LineOf(uint64_t site) {
  Source& source = Current();
  Line line;
  if (site <= source.base) return line;
  auto known = source.known.find(site);
  if (known != source.known.end()) return known->second;
  char address[32];
  // A return address is one past the call.
  std::snprintf(address, sizeof(address), "0x%llx", static_cast<unsigned long long>(site - source.base - 1));
  std::string out = Output({"addr2line", "-i", "-f", "-e", source.library, address});
  // Pairs of lines from the innermost inlined function outwards: its name, then FILE:LINE.
  size_t at = 0;
  while (at < out.size()) {
    size_t end = out.find('\n', at), stop = end == std::string::npos ? end : out.find('\n', end + 1);
    if (end == std::string::npos || stop == std::string::npos) break;
    std::string function = out.substr(at, end - at), place = out.substr(end + 1, stop - end - 1);
    at = stop + 1;
    size_t colon = place.rfind(source.text);
    int number = colon == std::string::npos ? 0 : std::atoi(place.c_str() + colon + source.text.size());
    if (number <= 0) continue;  // one of our headers
    if (line.inner < 0) line.inner = number;
    line.kernel = number;
    line.function = function;
  }
  source.known[site] = line;
  return line;
}

}  // namespace uir::engine
