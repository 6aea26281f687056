// SPDX-License-Identifier: Apache-2.0
#include "device/engine/pipes.h"

#include <algorithm>

namespace uir::engine {

void Pipes::Join(Known* into, const Known& from) {
  for (uint32_t i = 0; i < kMost; ++i) into->near[i] = std::max(into->near[i], from.near[i]);
  if (!from.far || from.far == into->far) return;
  if (!into->far) {
    into->far = from.far;
    return;
  }
  Shared<Far> joined(new Far());
  joined->of = into->far->of;
  for (size_t core = 0; core < joined->of.size(); ++core) {
    for (uint32_t i = 0; i < kMost; ++i) joined->of[core][i] = std::max(joined->of[core][i], from.far->of[core][i]);
  }
  into->far = joined;
}

uint32_t Pipes::Issue(uint32_t pipe) {
  if (pipe != kScalar) Join(&pipes_[pipe], pipes_[kScalar]);
  return ++issued_[pipe];
}

Pipes::Known Pipes::Publish(uint32_t pipe) const {
  Known known = pipes_[pipe];
  if (pipe != kScalar) Join(&known, pipes_[kScalar]);
  known.near[pipe] = issued_[pipe];
  known.time = std::max(Ready(pipe), ended_[pipe]);
  return known;
}

void Pipes::Acquire(uint32_t pipe, const Known& published) {
  Join(&pipes_[pipe], published);
  if (published.far) {
    // what others have waited for of this core comes back with their flags
    const Numbers& own = published.far->of[core_];
    for (uint32_t i = 0; i < kMost; ++i) pipes_[pipe].near[i] = std::max(pipes_[pipe].near[i], own[i]);
  }
  pipes_[pipe].time = std::max(Ready(pipe), published.time);
}

void Pipes::BarrierAll() {
  Known all;
  for (const Known& known : pipes_) Join(&all, known);
  all.near = issued_;
  all.time = End();
  pipes_.fill(all);
}

Pipes::Known Pipes::ForOthers(const Known& known) const {
  Known out;
  out.time = known.time;
  out.far = Shared<Far>(new Far());
  if (known.far) {
    out.far->of = known.far->of;
  } else {
    out.far->of.resize(cores_);
  }
  out.far->of[core_] = known.near;
  return out;
}

double Pipes::End() const {
  double end = 0;
  for (uint32_t i = 0; i < kMost; ++i) end = std::max({end, pipes_[i].time, ended_[i]});
  return end;
}

}  // namespace uir::engine
