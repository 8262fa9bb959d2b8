// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>

#include <tessera/base/other_names.hpp>
#include <tessera/base/text.hpp>

namespace tessera {
namespace {

struct OtherName {
  std::string_view other;  ///< in lower case, without "-" and "_"
  /// Names here: of a value, a mesh axis, a key, a command. The first that is a candidate counts.
  std::array<std::string_view, 3> ours;
};

constexpr OtherName other_names[] = {
    // strategies and mesh axes
    {"ddp", {"data"}},
    {"dp", {"data"}},
    {"dataparallel", {"data"}},
    {"zero3", {"fsdp"}},
    {"fullshard", {"fsdp"}},
    {"fullyshard", {"fsdp"}},
    {"hsdp", {"hybrid"}},
    {"hybridshard", {"hybrid"}},
    {"tp", {"tensor", "model", "distributed.tensor_parallel_size"}},
    {"tensorparallel", {"tensor", "model", "distributed.tensor_parallel_size"}},
    {"tensor", {"model", "distributed.tensor_parallel_size"}},
    {"pp", {"pipeline", "distributed.pipeline_parallel_size"}},
    {"pipe", {"pipeline", "distributed.pipeline_parallel_size"}},
    {"pipelineparallel", {"pipeline", "distributed.pipeline_parallel_size"}},
    {"cp", {"context"}},
    {"contextparallel", {"context"}},
    {"sp", {"context", "distributed.sequence_parallel"}},
    {"sequence", {"context"}},
    {"ep", {"expert"}},
    {"expertparallel", {"expert"}},
    {"experts", {"expert"}},
    // types
    {"fp32", {"float32"}},
    {"fp64", {"float64"}},
    {"float", {"float32"}},
    {"double", {"float64"}},
    {"half", {"float16", "fp16"}},
    {"float16", {"fp16"}},
    {"fp16", {"float16"}},
    {"bfloat16", {"bf16"}},
    {"bf16", {"bfloat16"}},
    // keys
    {"lr", {"training.learning_rate"}},
    {"bs", {"training.batch_size"}},
    {"globalbatch", {"training.batch_size"}},
    {"epochs", {"training.num_epochs"}},
    {"recompute", {"training.activation_checkpointing"}},
    {"gradientcheckpointing", {"training.activation_checkpointing"}},
    {"optim", {"optimizer.kind"}},
    {"wd", {"optimizer.weight_decay"}},
    {"eps", {"optimizer.epsilon"}},
    {"warmup", {"schedule.warmup_steps"}},
    {"lrschedulertype", {"schedule.kind"}},
    {"maxgradnorm", {"clip.global_norm"}},
    {"gradientclipping", {"clip.global_norm"}},
    {"amp", {"distributed.mixed_precision"}},
    {"precision", {"distributed.mixed_precision"}},
    {"vocab", {"model.transformer.vocabulary"}},
    {"seqlength", {"model.transformer.context"}},
    {"seqlen", {"model.transformer.context"}},
    {"hidden", {"model.transformer.width"}},
    {"nembd", {"model.transformer.width"}},
    {"dmodel", {"model.transformer.width"}},
    {"nlayer", {"model.transformer.blocks"}},
    {"numlayers", {"model.transformer.blocks"}},
    {"nhead", {"model.transformer.heads"}},
    {"numattentionheads", {"model.transformer.heads"}},
    {"numexperts", {"model.transformer.experts"}},
    // commands, and values of options
    {"train", {"run"}},
    {"fit", {"run"}},
    {"inspect", {"plan"}},
    {"torch", {"pytorch"}},
    {"sbatch", {"slurm"}},
    {"qsub", {"pbs"}},
};

std::string plain(std::string_view word) {
  std::string text;
  for (const char c : word)
    if (c != '-' && c != '_')
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (text.ends_with("size")) text.resize(text.size() - 4);
  return text;
}

}  // namespace

std::optional<std::string> name_of_other_tool(std::string_view word,
                                              std::span<const std::string_view> candidates) {
  const std::string wanted = plain(word);
  for (const OtherName& row : other_names) {
    if (row.other != wanted) continue;
    for (const std::string_view name : row.ours)
      if (std::ranges::find(candidates, name) != candidates.end()) return std::string(name);
  }
  return std::nullopt;
}

std::string did_you_mean(std::string_view wrong, std::span<const std::string_view> names) {
  const auto near = suggest_nearest(wrong, names);
  return near ? "; did you mean " + *near + "?" : "";
}

}  // namespace tessera
