// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <vector>

#include <tessera/base/other_names.hpp>
#include <tessera/base/text.hpp>

namespace tessera {
namespace {

struct OtherNames {
  std::string_view ours;    ///< a value, a mesh axis, a key or a command
  std::string_view others;  ///< in lower case, without "-" and "_"
};

/// The first row with the word counts whose name is a candidate.
constexpr OtherNames other_names[] = {
    // values and commands
    {"data", "ddp dp dataparallel"},
    {"fsdp", "zero3 fullshard fullyshard"},
    {"hybrid", "hsdp hybridshard"},
    {"tensor", "tp tensorparallel"},
    {"float32", "fp32 float"},
    {"float64", "fp64 double"},
    {"float16", "half fp16"},
    {"fp16", "half float16"},
    {"bf16", "bfloat16"},
    {"bfloat16", "bf16"},
    {"run", "train fit"},
    {"plan", "inspect"},
    {"pytorch", "torch"},
    {"slurm", "sbatch"},
    {"pbs", "qsub"},
    // mesh axes
    {"model", "tp tensorparallel tensor"},
    {"pipeline", "pp pipe pipelineparallel"},
    {"context", "cp contextparallel sp sequence"},
    {"expert", "ep expertparallel experts"},
    // keys
    {"distributed.tensor_parallel_size", "tp tensorparallel tensor"},
    {"distributed.pipeline_parallel_size", "pp pipe pipelineparallel"},
    {"distributed.sequence_parallel", "sp"},
    {"distributed.model_overlap", "asynctp tpcommoverlap userbuffers"},
    {"distributed.mixed_precision", "amp precision"},
    {"training.learning_rate", "lr"},
    {"training.batch_size", "bs globalbatch"},
    {"training.num_epochs", "epochs"},
    {"training.activation_checkpointing", "recompute gradientcheckpointing"},
    {"optimizer.kind", "optim"},
    {"optimizer.weight_decay", "wd"},
    {"optimizer.epsilon", "eps"},
    {"schedule.warmup_steps", "warmup"},
    {"schedule.kind", "lrschedulertype"},
    {"clip.global_norm", "maxgradnorm gradientclipping"},
    {"model.transformer.vocabulary", "vocab"},
    {"model.transformer.context", "seqlength seqlen"},
    {"model.transformer.width", "hidden nembd dmodel"},
    {"model.transformer.blocks", "nlayer numlayers"},
    {"model.transformer.heads", "nhead numattentionheads"},
    {"model.transformer.experts", "numexperts"},
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
  for (const OtherNames& row : other_names) {
    const std::vector<std::string> others = split_text(row.others, ' ');
    if (std::ranges::find(others, wanted) != others.end() &&
        std::ranges::find(candidates, row.ours) != candidates.end())
      return std::string(row.ours);
  }
  return std::nullopt;
}

std::string did_you_mean(std::string_view wrong, std::span<const std::string_view> names) {
  const auto near = suggest_nearest(wrong, names);
  return near ? "; did you mean " + *near + "?" : "";
}

}  // namespace tessera
