// SPDX-License-Identifier: Apache-2.0
#include "codegen/pipes/insert.h"

namespace uir::codegen::pipes {

namespace {

class Inserter {
 public:
  Inserter(const Program& program, const std::vector<Placed>& syncs, const std::vector<std::string>& comments)
      : program_(program), syncs_(syncs), comments_(comments), actions_(Arrange(program, syncs)) {}

  std::vector<Node> Body(const std::vector<Node>& nodes, int body) {
    int position = 0;
    std::vector<Node> out;
    Append(nodes, body, &position, &out);
    // A body without items has no syncs; behind the last item its sets are there already.
    Between(body, position, false, &out);
    return out;
  }

 private:
  void Append(const std::vector<Node>& nodes, int body, int* position, std::vector<Node>* out) {
    for (const Node& node : nodes) {
      if (node.kind == Node::Kind::kGroup) {
        Node group = Node::Group(node.text);
        Append(node.body, body, position, &group.body);
        out->push_back(std::move(group));
      } else if (node.kind == Node::Kind::kPlain) {
        out->push_back(node);
      } else {
        Between(body, *position, false, out);
        Node item = node;
        if (node.kind == Node::Kind::kLoop && !node.ends) {
          item.body = Body(node.body, program_.bodies[body].items[*position].index + 1);
        }
        out->push_back(std::move(item));
        Between(body, ++*position, true, out);
      }
    }
  }

  /*! \brief What stands at a gap: the sets of what is before it, or all else. */
  void Between(int body, int gap, bool sets, std::vector<Node>* out) {
    for (const Action& action : actions_[body][gap]) {
      if ((action.kind == Action::Kind::kSet) != sets) continue;
      const Placed& placed = syncs_[action.sync];
      bool many = action.kind == Action::Kind::kPrologue || action.kind == Action::Kind::kEpilogue;
      for (int64_t n = 0; n < (many ? placed.distance : 1); ++n) out->push_back(Node::Of(Make(action, n)));
    }
  }

  Sync Make(const Action& action, int64_t n) const {
    const Placed& placed = syncs_[action.sync];
    Sync sync;
    sync.number = action.sync + 1;
    sync.comment = comments_[action.sync];
    if (placed.kind != Placed::Kind::kFlag) {
      sync.kind = Sync::Kind::kBarrier;
      if (placed.kind != Placed::Kind::kDrainAll) sync.from = program_.pipes[placed.from];
      if (placed.kind == Placed::Kind::kBarrier) sync.to = sync.from;
      return sync;
    }
    bool set = action.kind == Action::Kind::kSet || action.kind == Action::Kind::kPrologue;
    sync.kind = set ? Sync::Kind::kSet : Sync::Kind::kWait;
    sync.from = program_.pipes[placed.from];
    sync.to = program_.pipes[placed.to];
    sync.id = Turn(placed, action.kind, n).Mod(placed.ids) + Affine::Constant(placed.first_id);
    return sync;
  }

  /*! \brief Which set or wait of the flag this is, counted over the whole kernel; equal for a set and its wait. */
  Affine Turn(const Placed& placed, Action::Kind kind, int64_t n) const {
    Affine before = Affine::Constant(0), within = Affine::Constant(0), all = Affine::Constant(1);
    int64_t times = 1;
    bool inside = false;
    for (int loop : program_.Around(placed.body)) {
      if (loop == placed.home) inside = true;
      const LoopOf& one = program_.loops[loop];
      Affine& turn = inside ? within : before;
      turn = turn.Scale(one.extent) + Affine::Var(one.var);
      if (inside) times *= one.extent;
      if (inside) all = one.fewer ? Affine::Var(one.var) : all.Scale(one.extent);
    }
    Affine start = before.Scale(inside ? times + placed.distance : 1);
    switch (kind) {
      case Action::Kind::kPrologue:
        return start + Affine::Constant(n);
      case Action::Kind::kSet:
        return start + within + Affine::Constant(placed.distance);
      case Action::Kind::kEpilogue:
        return start + all + Affine::Constant(n);
      default:
        return start + within;
    }
  }

  const Program& program_;
  const std::vector<Placed>& syncs_;
  const std::vector<std::string>& comments_;
  Actions actions_;
};

}  // namespace

std::vector<Node> Insert(const std::vector<Node>& nodes, const Program& program, const std::vector<Placed>& syncs,
                         const std::vector<std::string>& comments) {
  return Inserter(program, syncs, comments).Body(nodes, 0);
}

}  // namespace uir::codegen::pipes
