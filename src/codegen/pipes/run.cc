// SPDX-License-Identifier: Apache-2.0
#include "codegen/pipes/run.h"

#include <tvm/ffi/error.h>

#include <algorithm>
#include <array>
#include <functional>

namespace uir::codegen::pipes {

Run::Run(const Program& program, std::vector<int64_t> extents, Optional optional)
    : program(program), extents(std::move(extents)), optional_(optional) {
  std::vector<int64_t> iterations;
  Walk(0, &iterations);
  std::vector<int64_t> count(program.pipes.size(), 0);
  for (const Instance& instance : instances) counts.push_back(++count[program.ops[instance.op].pipe]);
}

void Run::Walk(int body, std::vector<int64_t>* iterations) {
  const std::vector<Item>& items = program.bodies[body].items;
  for (int i = 0; i < static_cast<int>(items.size()); ++i) {
    steps.push_back({-1, body, i});
    if (!items[i].is_loop) {
      steps.push_back({static_cast<int>(instances.size()), body, i});
      instances.push_back({items[i].index, *iterations});
      continue;
    }
    if (!Runs(items[i].index, *iterations)) continue;
    iterations->push_back(0);
    for (int64_t k = 0; k < extents[items[i].index]; ++k) {
      iterations->back() = k;
      Walk(items[i].index + 1, iterations);
    }
    iterations->pop_back();
  }
  steps.push_back({-1, body, static_cast<int>(items.size())});
}

bool Run::Runs(int loop, const std::vector<int64_t>& iterations) const {
  const LoopOf& own = program.loops[loop];
  if (!own.optional || optional_ == Optional::kAll) return true;
  if (optional_ == Optional::kNone) return false;
  return own.parent < 0 || iterations.back() + 1 < extents[own.parent];
}

void Run::FindNeeds(Conflicts* conflicts) {
  size_t ops = program.ops.size();
  std::vector<std::vector<int>> possible(ops), so_far(ops);
  for (size_t second = 0; second < ops; ++second) {
    for (size_t first = 0; first < ops; ++first) {
      if (conflicts->Possible(static_cast<int>(first), static_cast<int>(second))) {
        possible[second].push_back(static_cast<int>(first));
      }
    }
  }
  needs.assign(instances.size(), {});
  std::vector<int> latest(program.pipes.size());
  for (int j = 0; j < static_cast<int>(instances.size()); ++j) {
    latest.assign(latest.size(), -1);
    // The ops that stand last first: they are likely to be the latest.
    const std::vector<int>& others = possible[instances[j].op];
    for (size_t o = others.size(); o-- > 0;) {
      int op = others[o];
      int& best = latest[program.ops[op].pipe];
      const std::vector<int>& earlier = so_far[op];
      for (size_t n = earlier.size(); n-- > 0 && earlier[n] > best;) {
        if (conflicts->Meet(instances[earlier[n]], instances[j])) best = earlier[n];
      }
    }
    for (int i : latest) {
      if (i >= 0) needs[j].push_back(i);
    }
    // The latest first: what it knows may settle the others.
    std::sort(needs[j].begin(), needs[j].end(), std::greater<int>());
    so_far[instances[j].op].push_back(j);
  }
}

namespace {

constexpr size_t kMostPipes = 8;

struct Clock {
  std::array<int64_t, kMostPipes> done{}, over{};
  void Join(const Clock& other) {
    for (size_t p = 0; p < kMostPipes; ++p) {
      done[p] = std::max(done[p], other.done[p]);
      over[p] = std::max(over[p], other.over[p]);
    }
  }
};

class Machine {
 public:
  Machine(const Run& run, const Vocabulary& vocabulary, const std::vector<Placed>& syncs)
      : run_(run),
        syncs_(syncs),
        pipes_(run.program.pipes.size()),
        clocks_(pipes_),
        issued_(pipes_, 0),
        waited_(pipes_, 0),
        sent_(syncs.size()),
        taken_(syncs.size(), 0),
        waits_(syncs.size()),
        sets_(syncs.size(), 0) {
    if (pipes_ > kMostPipes) TVM_FFI_THROW(InternalError) << vocabulary.name << " has more pipes than a clock holds";
    for (size_t p = 0; p < pipes_; ++p) {
      const std::string& name = run.program.pipes[p];
      serial_.push_back(vocabulary.serial.count(name) != 0);
      coherent_.emplace_back();
      for (const std::string& to : run.program.pipes) coherent_.back().push_back(vocabulary.coherent.count({name, to}));
      if (name == vocabulary.issuer) issuer_ = static_cast<int>(p);
    }
  }

  bool Knows(int pipe, int instance) const {
    int other = run_.program.ops[run_.instances[instance].op].pipe;
    return coherent_[other][pipe] || clocks_[pipe].done[other] >= run_.counts[instance];
  }

  /*! \brief As if a sync had ordered the instance before what `pipe` starts next; `then` is what its pipe knew. */
  void Learn(int pipe, int instance, const Clock& then) {
    int other = run_.program.ops[run_.instances[instance].op].pipe;
    clocks_[pipe].Join(then);
    int64_t count = pipe == other ? issued_[pipe] : run_.counts[instance];
    clocks_[pipe].done[other] = std::max(clocks_[pipe].done[other], count);
  }

  const Clock& Of(int pipe) const { return clocks_[pipe]; }

  /*! \brief What an instruction waits for by itself, before it starts. */
  void Begin(const Op& op) {
    const std::set<std::string>& awaited = op.instruction->awaits;
    if (awaited.empty()) return;
    Clock message;
    for (size_t p = 0; p < pipes_; ++p) {
      if (awaited.count(run_.program.pipes[p])) message.Join(AllOf(static_cast<int>(p)));
    }
    for (Clock& clock : clocks_) clock.Join(message);
  }

  void Issue(const Op& op) {
    ++issued_[op.pipe];
    bool writes = std::any_of(op.instruction->regions.begin(), op.instruction->regions.end(),
                              [](const Region& region) { return region.write; });
    if (op.pipe == issuer_ && writes && !op.instruction->blocks) written_ = issued_[op.pipe];
    if (serial_[op.pipe]) clocks_[op.pipe].done[op.pipe] = issued_[op.pipe];
    if (!op.instruction->blocks && !op.instruction->meets) return;
    Clock message = AllOf(op.pipe);
    for (size_t p = 0; op.instruction->meets && p < pipes_; ++p) message.Join(AllOf(static_cast<int>(p)));
    for (Clock& clock : clocks_) {
      Clock told = message;
      // to wait does not carry what the issuer itself wrote before: that takes a flag
      if (op.pipe == issuer_ && clock.done[issuer_] < written_) told.done[issuer_] = clock.done[issuer_];
      clock.Join(told);
    }
  }

  void Set(int sync) {
    const Placed& flag = syncs_[sync];
    sent_[sync].push_back(AllOf(flag.from));
    ++sets_[sync];
  }

  void Wait(int sync) {
    const Placed& flag = syncs_[sync];
    Clock message = sent_[sync][taken_[sync]++];
    waits_[sync].push_back(++waited_[flag.to]);
    clocks_[flag.to].over[flag.to] = waited_[flag.to];
    clocks_[flag.to].Join(message);
    if (flag.to != issuer_) return;
    message.over[flag.to] = waited_[flag.to];
    for (Clock& clock : clocks_) clock.Join(message);
  }

  void Barrier(int sync) {
    const Placed& barrier = syncs_[sync];
    if (barrier.kind == Placed::Kind::kBarrier) {
      clocks_[barrier.from].done[barrier.from] = issued_[barrier.from];
      return;
    }
    Clock message;
    for (size_t p = 0; p < pipes_; ++p) {
      if (barrier.kind == Placed::Kind::kDrainAll || static_cast<int>(p) == barrier.from) {
        message.Join(AllOf(static_cast<int>(p)));
      }
    }
    for (Clock& clock : clocks_) clock.Join(message);
  }

  /*! \brief How many sets of the flag there are, with the one that comes, since the last wait known to its setter. */
  int64_t Outstanding(int sync) const {
    const Placed& flag = syncs_[sync];
    const std::vector<int64_t>& waits = waits_[sync];
    int64_t over = clocks_[flag.from].over[flag.to];
    auto known = std::upper_bound(waits.begin(), waits.end(), over) - waits.begin();
    return sets_[sync] + 1 - known;
  }

 private:
  Clock AllOf(int pipe) const {
    Clock clock = clocks_[pipe];
    clock.done[pipe] = issued_[pipe];
    clock.over[pipe] = waited_[pipe];
    return clock;
  }

  const Run& run_;
  const std::vector<Placed>& syncs_;
  size_t pipes_;
  std::vector<Clock> clocks_;
  std::vector<int64_t> issued_, waited_;
  /*! \brief By sync: what its sets carried, and how many of these were taken. */
  std::vector<std::vector<Clock>> sent_;
  std::vector<size_t> taken_;
  std::vector<std::vector<int64_t>> waits_;
  std::vector<int64_t> sets_;
  std::vector<bool> serial_;
  /*! \brief [from][to] */
  std::vector<std::vector<bool>> coherent_;
  int issuer_ = -1;
  /*! \brief The last instruction of the issuer that wrote memory, by its number on that pipe. */
  int64_t written_ = 0;
};

/*! \brief Runs everything; `at_op` and `before_set` look at the machine and may end it by answering false. */
void Drive(const Run& run, const std::vector<Placed>& syncs, const Actions& actions, int without, Machine* machine,
           const std::function<bool(int)>& at_op, const std::function<bool(int)>& before_set) {
  for (const Run::Step& step : run.steps) {
    if (step.instance >= 0) {
      const Op& op = run.program.ops[run.instances[step.instance].op];
      machine->Begin(op);
      if (!at_op(step.instance)) return;
      machine->Issue(op);
      continue;
    }
    for (const Action& action : actions[step.body][step.gap]) {
      if (action.sync == without) continue;
      bool many = action.kind == Action::Kind::kPrologue || action.kind == Action::Kind::kEpilogue;
      for (int64_t n = many ? syncs[action.sync].distance : 1; n > 0; --n) {
        switch (action.kind) {
          case Action::Kind::kSet:
          case Action::Kind::kPrologue:
            if (!before_set(action.sync)) return;
            machine->Set(action.sync);
            break;
          case Action::Kind::kBarrier:
            machine->Barrier(action.sync);
            break;
          case Action::Kind::kWait:
          case Action::Kind::kEpilogue:
            machine->Wait(action.sync);
            break;
        }
      }
    }
  }
}

}  // namespace

Outcome Check(const Run& run, const Vocabulary& vocabulary, const std::vector<Placed>& syncs, const Actions& actions,
              int without, bool stop_at_first) {
  Machine machine(run, vocabulary, syncs);
  Outcome outcome;
  outcome.ids.assign(syncs.size(), 1);
  auto at_op = [&](int instance) {
    if (run.needs.empty()) return true;
    int pipe = run.program.ops[run.instances[instance].op].pipe;
    for (int other : run.needs[instance]) {
      if (!machine.Knows(pipe, other)) outcome.races.push_back({other, instance});
    }
    return outcome.races.empty() || !stop_at_first;
  };
  auto before_set = [&](int sync) {
    outcome.ids[sync] = std::max(outcome.ids[sync], machine.Outstanding(sync));
    return true;
  };
  Drive(run, syncs, actions, without, &machine, at_op, before_set);
  return outcome;
}

std::vector<Race> Missing(const Run& run, const Vocabulary& vocabulary, const std::vector<Placed>& syncs) {
  Machine machine(run, vocabulary, syncs);
  std::vector<Race> races;
  std::vector<Clock> then(run.instances.size());
  auto at_op = [&](int instance) {
    int pipe = run.program.ops[run.instances[instance].op].pipe;
    for (int other : run.needs[instance]) {
      if (machine.Knows(pipe, other)) continue;
      races.push_back({other, instance});
      machine.Learn(pipe, other, then[other]);
    }
    then[instance] = machine.Of(pipe);
    return true;
  };
  Drive(run, syncs, Arrange(run.program, syncs), -1, &machine, at_op, [](int) { return true; });
  return races;
}

std::set<std::pair<int, int>> Together(const Run& run, const Vocabulary& vocabulary, const std::vector<Placed>& syncs,
                                       const std::vector<int>& flags) {
  Machine machine(run, vocabulary, syncs);
  std::set<std::pair<int, int>> together;
  auto before_set = [&](int sync) {
    if (std::find(flags.begin(), flags.end(), sync) == flags.end()) return true;
    for (int other : flags) {
      if (other != sync && machine.Outstanding(other) != 1) together.insert(std::minmax(sync, other));
    }
    return true;
  };
  Drive(run, syncs, Arrange(run.program, syncs), -1, &machine, [](int) { return true; }, before_set);
  return together;
}

}  // namespace uir::codegen::pipes
