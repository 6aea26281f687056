// SPDX-License-Identifier: Apache-2.0
// The code of tiles by their activation. No guard: conv2d_tile_kernels.cc includes this behind the tiles.

template <Activation kActivation>
struct Ends {
  static constexpr FinishOf kFinish = Finish<kActivation>;
  static constexpr GatherOf kGather = GatherPatch<kActivation>;
};

/*! What `choose` returns for the activation; null: not one of ours. */
template <typename Choose>
inline auto ChooseEnd(Activation activation, Choose choose) -> decltype(choose(Ends<Activation::kNone>())) {
  switch (activation) {
    case Activation::kNone:
      return choose(Ends<Activation::kNone>());
    case Activation::kRelu:
      return choose(Ends<Activation::kRelu>());
    case Activation::kLeakyRelu:
      return choose(Ends<Activation::kLeakyRelu>());
    case Activation::kClip:
      return choose(Ends<Activation::kClip>());
    case Activation::kTanh:
      return choose(Ends<Activation::kTanh>());
    case Activation::kSigmoid:
      return choose(Ends<Activation::kSigmoid>());
    case Activation::kSilu:
      return choose(Ends<Activation::kSilu>());
    case Activation::kHardSigmoid:
      return choose(Ends<Activation::kHardSigmoid>());
    case Activation::kHardSwish:
      return choose(Ends<Activation::kHardSwish>());
    case Activation::kGeluErf:
    case Activation::kGeluTanh:
      break;
  }
  return nullptr;
}

inline FinishOf FinishFor(Activation activation) {
  return ChooseEnd(activation, [](auto ends) { return ends.kFinish; });
}
inline GatherOf GatherFor(Activation activation) {
  return ChooseEnd(activation, [](auto ends) { return ends.kGather; });
}
