// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <vector>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/plan/action_text.hpp>
#include <tessera/tensor/transition.hpp>

namespace tessera {
namespace {

std::string in_phase(Phase phase, std::string_view name) {
  constexpr std::array<std::string_view, 3> before{"", "start_", "finish_"};
  return fmt::format("{}{}", before[static_cast<std::size_t>(phase)], name);
}

std::string backward_name(Gradients gradients) {
  constexpr std::array<std::string_view, 3> after{"", "_inputs", "_weights"};
  return fmt::format("{}{}", Backward::name, after[static_cast<std::size_t>(gradients)]);
}

}  // namespace

std::string name_of(const Action& action) {
  return match(
      action, [](const Backward& a) { return backward_name(a.gradients); },
      [](const Message& a) { return in_phase(a.phase, a.sends ? "send" : "receive"); },
      [](const auto& a) {
        if constexpr (requires { a.phase; })
          return in_phase(a.phase, a.name);
        else
          return std::string(a.name);
      });
}

std::string subject_of(const Action& action, const Plan& plan, const StagePlan& stage) {
  const auto path = [&](SlotId id) { return stage.slots[id].path; };
  return match(
      action, [&](const Compute& a) { return plan.input.model.layers[a.layer].name; },
      [&](const PartialLoss&) { return std::string(); }, [&](const Loss&) { return std::string(); },
      [&](const Accumulate& a) { return path(a.to); }, [&](const Move& a) { return path(a.to); },
      [&](const Message& a) { return path(a.tensor); },
      [&](const BucketMove& a) {
        return name_of(stage.parameters.buckets[a.bucket], stage.parameters.units);
      },
      [&](const ReduceTied& a) {
        return a.bucket < 0 ? std::string()
                            : name_of(stage.parameters.buckets[a.bucket], stage.parameters.units);
      },
      [&](const ReduceRows& a) { return stage.parameters.units[a.unit].name; },
      [&](const Scalars&) { return std::string(); }, [&](const Update&) { return std::string(); });
}

std::string to_string(const ListedAction& listed, const Plan& plan, const StagePlan& stage) {
  std::vector<std::string> details;
  if (const std::string subject = subject_of(listed.action, plan, stage); !subject.empty())
    details.push_back(subject);
  const auto add_microbatch = [&] {
    if (plan.input.microbatches > 1) details.push_back(fmt::format("m{}", listed.microbatch));
  };
  match(
      *listed.action,
      [&](const Compute& a) {
        if (a.ring_part >= 0) details.push_back(fmt::format("part {}", a.ring_part));
        add_microbatch();
      },
      [&](const PartialLoss&) { add_microbatch(); }, [&](const Loss&) { add_microbatch(); },
      [&](const Accumulate&) { add_microbatch(); },
      [&](const Move& a) {
        details.emplace_back(name_of(transition(stage.slots[a.from].placements[a.axis],
                                                stage.slots[a.to].placements[a.axis])));
        add_microbatch();
      },
      [&](const Message& a) {
        if (a.peer >= 0) details.push_back(fmt::format("stage {}", a.peer));
        add_microbatch();
      },
      [](const BucketMove&) {}, [](const ReduceTied&) {}, [](const ReduceRows&) {},
      [](const Scalars&) {}, [](const Update&) {});
  if (details.empty()) return name_of(listed.action);
  return fmt::format("{}({})", name_of(listed.action), join(details));
}

}  // namespace tessera
