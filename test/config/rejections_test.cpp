// SPDX-License-Identifier: Apache-2.0
// Configurations that are rejected, each with its message.
#include <tessera/base/text.hpp>
#include <tessera/config/config_rules.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

struct Rejection {
  std::string
      overrides;        ///< separated by ";"; "mesh=" stands for --mesh, "strategy=" for --strategy
  std::string message;  ///< parts of the message in their order, separated by " ... "
};

/// Loads and validates the tutorial with the overrides of `base` and then those of each case.
void expect_rejected(const std::vector<Rejection>& cases, const std::string& base = "",
                     Size ranks = 4) {
  for (const Rejection& one : cases) {
    SCOPED_TRACE(one.overrides);
    ConfigSource source;
    for (const std::string& item : split_text(base + ";" + one.overrides, ';')) {
      const std::string given(trim(item));
      if (given.starts_with("mesh="))
        source.mesh = given.substr(5);
      else if (given.starts_with("strategy="))
        source.strategy = given.substr(9);
      else if (!given.empty())
        source.overrides.push_back(given);
    }
    std::string pattern = one.message;
    std::vector<std::string> parts;
    for (std::size_t gap; (gap = pattern.find(" ... ")) != std::string::npos;
         pattern = pattern.substr(gap + 5))
      parts.push_back(pattern.substr(0, gap));
    parts.push_back(pattern);
    config_test::expect_error(
        [&] { validate(config_test::load_text("[model]\nwidths = [4, 64, 1]", source), ranks); },
        parts);
  }
}

TEST(Rejections, Types) {
  expect_rejected({
      {"training.batch_size=32.0", "training.batch_size = 32.0: must be an integer"},
      {"training.batch_size=many", "training.batch_size = \"many\": must be an integer"},
      {"training.batch_size=true", "training.batch_size = true: must be an integer"},
      {"training.batch_size=", "training.batch_size = \"\": must be an integer"},
      {"training.batch_size=99999999999999999999", "must be an integer"},
      {"training.learning_rate=NaN", "training.learning_rate = \"NaN\": must be a number"},
      {"training.learning_rate=[1]", "training.learning_rate = [1]: must be a number"},
      {"model.bias=1", "model.bias = 1: must be true or false"},
      {"model.seed=-1", "model.seed = -1: must be an integer from 0"},
      {"model.widths=4", "model.widths = 4: must be a list of integers"},
      {"model.widths=[4, 'a']", "model.widths = [4, \"a\"]: must be a list of integers"},
      {"model.widths=[4, 64", "model.widths = \"[4, 64\": must be a list of integers"},
      {"model.activation=3", "model.activation = 3: must be one of identity, relu"},
      {"model.dtype=int32", "model.dtype = \"int32\": must be one of float32, float64"},
      {"distributed.mesh_axis_names=data", "must be a list of strings"},
      {"distributed.world_size=2021-02-03", "distributed.world_size = \"2021-02-03\": must be an"},
      {"distributed.strategy={a=1}", "distributed.strategy = {a = 1}: must be one of data"},
      {"strategy=5", "distributed.strategy = 5: must be one of data"},
      {"distributed.strategy=fspd",
       "distributed.strategy = \"fspd\": must be one of data, zero1, zero2, fsdp, hybrid, tensor; "
       "did you mean fsdp?"},
      {"distributed.backend=gloo",
       "distributed.backend = \"gloo\": must be one of auto, mpi, nccl"},
      {"distributed.gradient_reduce_type=max",
       "distributed.gradient_reduce_type = \"max\": must be one of mean, sum"},
  });
  for (const char* sizes : {"['node']", "'nodes'", "[1.5]", "[-9223372036854775808]"})
    expect_rejected({{std::string("distributed.mesh_shape=") + sizes,
                      "distributed.mesh_shape =  ... : must be a list of integers, \"nodes\" and "
                      "\"per_node\""}});
}

TEST(Rejections, NamesOfOtherTools) {
  expect_rejected({
      {"strategy=zero3", "did you mean fsdp?"},
      {"strategy=ZeRO-3", "did you mean fsdp?"},
      {"strategy=hsdp", "did you mean hybrid?"},
      {"strategy=ddp", "did you mean data?"},
      {"strategy=dp", "did you mean data?"},
      {"strategy=tp", "did you mean tensor?"},
      {"strategy=pp", "did you mean distributed.pipeline_parallel_size?"},
      {"strategy=ep", "did you mean the mesh axis expert?"},
      {"strategy=cp", "did you mean the mesh axis context?"},
      {"strategy=sp", "did you mean distributed.sequence_parallel?"},
      {"mesh=dp=4", "did you mean data?"},
      {"mesh=tp=4", "did you mean model?"},
      {"mesh=pp=4", "did you mean pipeline?"},
      {"mesh=cp=4", "did you mean context?"},
      {"mesh=sp=4", "did you mean context?"},
      {"mesh=ep=4", "did you mean expert?"},
      {"mesh=hsdp=4", "must be one of pipeline, data, fsdp, expert, context, model"},
      {"distributed.mesh_rules.mlp=['tp']", "did you mean model?"},
      {"training.lr=1", "did you mean training.learning_rate?"},
      {"optimizer.lr=1", "did you mean training.learning_rate?"},
      {"lr=1", "did you mean training.learning_rate?"},
      {"model.heads=1", "did you mean model.transformer.heads?"},
      {"training.epochs=1", "did you mean training.num_epochs?"},
      {"distributed.tp=2", "did you mean distributed.tensor_parallel_size?"},
      {"tp_size=2", "did you mean distributed.tensor_parallel_size?"},
      {"distributed.pp=2", "did you mean distributed.pipeline_parallel_size?"},
      {"distributed.zero3=true", "did you mean distributed.strategy=fsdp?"},
      {"training.optimizer=adam", "did you mean optimizer.kind?"},
      {"distributed.dp=2", "did you mean the mesh axis data?"},
      {"model.dtype=bf16", "did you mean distributed.mixed_precision = \"bf16\"?"},
      {"model.dtype=bfloat16", "did you mean distributed.mixed_precision = \"bf16\"?"},
      {"model.dtype=float16", "did you mean distributed.mixed_precision = \"fp16\"?"},
      {"model.dtype=half", "did you mean distributed.mixed_precision = \"fp16\"?"},
      {"model.dtype=fp32", "did you mean float32?"},
      {"distributed.mixed_precision=bfloat16", "did you mean bf16?"},
      {"study.name=x", "study.name = \"x\": is a key of a study; tessera-bench reads it"},
      {"grid=[]", "is a key of a study; tessera-bench reads it"},
      {"machine.memory_bytes=1", "is a key of a machine file, for the option --machine"},
  });
}

TEST(Rejections, Tables) {
  expect_rejected({
      {"distributed.mesh_rules=3", "distributed.mesh_rules = 3: must be a table"},
      {"distributed.mesh_rules=model", "distributed.mesh_rules = \"model\": must be a table"},
      {"distributed.mesh_rules.mlp=3", "distributed.mesh_rules.mlp = 3: must be a list of strings"},
      {"distributed.mesh_rules.mlp=[1]", "distributed.mesh_rules.mlp = [1]: must be a list of st"},
      {"distributed.mesh_rules.mlp={}", "distributed.mesh_rules.mlp = {}: must be a list of stri"},
      {"distributed.mesh_rules.mlp.a=[]", "distributed.mesh_rules.\"mlp.a\" = []: the name must"},
      {"distributed.mesh_rules.=[]", "distributed.mesh_rules.\"\" = []: the name must be one of"},
      {"distributed.mesh_rules={mlp=3}", "distributed.mesh_rules.mlp = 3: must be a list of stri"},
      {"distributed.mesh_rule.mlp=model", "distributed.mesh_rule.mlp = \"model\": is not a known"},
      {"distributed.parameter_specs=P()", "distributed.parameter_specs = \"P()\": must be a table"},
      {"distributed.parameter_specs.layer1/kernel=3",
       "distributed.parameter_specs.\"layer1/kernel\" = \"3\": must be a PartitionSpec"},
      {"distributed.parameter_specs={\"layer1/kernel\" = 3}",
       "distributed.parameter_specs.\"layer1/kernel\" = 3: must be a string"},
      {"distributed.parameter_specs.\"layer1/kernel=P()",
       "distributed.parameter_specs.\"\\\"layer1/kernel\" = \"P()\": is not a parameter"},
      {"model.widths.a=[4]", "model.widths.a = [4]: is not a known key"},
  });
}

TEST(Rejections, Launches) {
  expect_rejected({
      {"distributed.world_size=8", "distributed.world_size = 8: must equal the number of ranks, 4"},
      {"distributed.world_size=4; distributed.num_nodes=2; distributed.num_processes_per_node=3",
       "distributed.num_nodes = 2: times distributed.num_processes_per_node = 3 must equal "
       "distributed.world_size, 4"},
      {"distributed.num_nodes=2; distributed.num_processes_per_node=3",
       "distributed.num_nodes = 2: times distributed.num_processes_per_node = 3 must equal the "
       "number of ranks, 4"},
      {"distributed.num_nodes=3", "distributed.num_nodes = 3: must divide the number of ranks, 4"},
      {"distributed.num_processes_per_node=3",
       "distributed.num_processes_per_node = 3: must divide the number of ranks, 4"},
      {"distributed.num_nodes=4611686018427387904; "
       "distributed.num_processes_per_node=4611686018427387904",
       "distributed.num_nodes = 4611686018427387904: times"},
      {"distributed.tensor_parallel_size=3",
       "distributed.tensor_parallel_size = 3: must divide the number of ranks, 4"},
      {"distributed.pipeline_parallel_size=3",
       "distributed.pipeline_parallel_size = 3: must divide the number of ranks, 4"},
      {"distributed.tensor_parallel_size=2; distributed.pipeline_parallel_size=3",
       "distributed.tensor_parallel_size = 2: times distributed.pipeline_parallel_size = 3 must "
       "divide the number of ranks, 4"},
      {"distributed.tensor_parallel_size=1099511627776; "
       "distributed.pipeline_parallel_size=1099511627776",
       "distributed.tensor_parallel_size = 1099511627776: times"},
  });
  for (const Size ranks : {Size{0}, Size{-4}, Size{1} << 31})
    expect_rejected({{"", "ranks = " + std::to_string(ranks) + ": must be from 1"}}, "", ranks);
}

TEST(Rejections, IgnoredTargets) {
  const std::string needs = ": needs training.loss = \"cross_entropy\"";
  expect_rejected({
      {"training.ignore_index=-100", "training.ignore_index = -100" + needs},
      {"training.ignore_index=16777217",
       "training.ignore_index = 16777217: must be from -2^24 to 2^24"},
      {"training.ignore_index=1.5", "training.ignore_index = 1.5: must be an integer"},
  });
  const std::string values =
      "model.widths=[]; data.samples=64; training.ignore_index=0; model.kind=";
  expect_rejected({
      {values + "pinn; model.activation=tanh; data.kind=poisson_points; training.loss=poisson",
       "training.ignore_index = 0" + needs},
      {values + "fno; data.kind=darcy; training.loss=relative_l2",
       "training.ignore_index = 0" + needs},
  });
}

TEST(Rejections, Meshes) {
  expect_rejected({
      {"distributed.mesh_axis_names=['data']",
       "distributed.mesh_axis_names = [\"data\"]: needs distributed.mesh_shape"},
      {"distributed.mesh_shape=[4]",
       "distributed.mesh_axis_names = [] (default): must have one name for each size of "
       "distributed.mesh_shape = [4]"},
      {"distributed.mesh_shape=[2, 2]; distributed.mesh_axis_names=['data']",
       "distributed.mesh_axis_names = [\"data\"]: must have one name for each size of "
       "distributed.mesh_shape = [2, 2]"},
      {"mesh=data", "mesh = data: must be axes and sizes, as in data=2"},
      {"mesh=data=2,data=2",
       "distributed.mesh_shape = [2, 2]: axis names must be unique, but 'data' is given twice"},
      {"mesh=batch=4",
       "distributed.mesh_axis_names = [\"batch\"]: \"batch\" must be one of pipeline, data, fsdp, "
       "expert, context, model"},
      {"mesh=data=0", "distributed.mesh_shape = [0]: sizes must be positive or one -1"},
      {"mesh=data=3",
       "distributed.mesh_shape = [3]: the sizes multiply to 3, which does not match the 4 ranks"},
      {"mesh=data=nodes,fsdp=per_node",
       "distributed.mesh_shape = [\"nodes\", \"per_node\"]: the number of nodes is known only in "
       "a launch"},
      {"mesh=data=4; distributed.tensor_parallel_size=2",
       "distributed.tensor_parallel_size = 2 ... \"model\", which is 1"},
      {"mesh=pipeline=2,data=2; distributed.pipeline_parallel_size=1",
       "distributed.pipeline_parallel_size = 1 ... \"pipeline\", which is 2"},
  });
}

TEST(Rejections, Strategies) {
  expect_rejected({
      {"strategy=hybrid",
       "distributed.strategy = \"hybrid\": needs a mesh with an axis fsdp ... data=2,fsdp=4 ... "
       "the mesh is data=4"},
      {"strategy=hybrid; mesh=data=2,model=2",
       "needs a mesh with an axis fsdp ... the mesh is data=2,model=2"},
      {"strategy=tensor; mesh=data=2,model=2",
       "distributed.strategy = \"tensor\": needs a mesh whose axis data has size 1, not 2"},
      {"strategy=tensor; mesh=fsdp=4", "needs a mesh whose axis fsdp has size 1, not 4"},
      {"strategy=tensor; distributed.tensor_parallel_size=2",
       "distributed.tensor_parallel_size = 2 ... \"model\", which is 4"},
      {"mesh=pipeline=4",
       "mesh axis pipeline = 4: 4 pipeline stages need a layer with parameters "
       "each, but the model has 2"},
      {"distributed.schedule=gpipe",
       "distributed.schedule = \"gpipe\": needs a mesh axis pipeline; the mesh is data=4"},
      {"distributed.context_attention=ring",
       "distributed.context_attention = \"ring\": needs a mesh axis context; the mesh is data=4"},
      {"distributed.zigzag=false",
       "distributed.zigzag = false: needs a mesh axis context; the mesh is data=4"},
      {"mesh=context=4; distributed.context_attention=ring",
       "distributed.context_attention = \"ring\": needs a model with attention"},
      {"mesh=context=4", "cannot split positions over 4 ranks of context: the linear layer"},
      {"strategy=fsdp; mesh=pipeline=2,fsdp=2; distributed.keep_last_unit=false",
       "distributed.keep_last_unit = false: must be true with a mesh axis pipeline"},
      {"strategy=fsdp; distributed.keep_last_unit=false; distributed.reshard_after_forward=false",
       "distributed.keep_last_unit = false: must be true with distributed.reshard_after_forward = "
       "false"},
  });
}

TEST(Rejections, Models) {
  expect_rejected({
      {"model.widths=[]", "model.widths = [] (default): must name at least an input"},
      {"model.widths=[4]", "model.widths = [4]: must name at least an input"},
      {"model.widths=[4, 0, 1]", "model.widths = [4, 0, 1]: must all be positive"},
      {"model.widths=[4, 2]",
       "data.kind = \"sum_of_squares\" (default): needs a model ... output width of 1"},
      {"model.widths=[2147483648, 2147483648, 1]",
       "model.widths = [2147483648, 2147483648, 1]: gives more parameters than memory can address"},
      {"model.dtype=float64; model.matmul_precision=tf32",
       "model.matmul_precision = \"tf32\": needs model.dtype = \"float32\""},
      {"model.kind=residual_mlp",
       "model.kind = \"residual_mlp\": must be \"mlp\" if keys such as model.widths are given"},
      {"model.residual_mlp.widht=3",
       "model.residual_mlp.widht = 3 ... did you mean model.residual_mlp.width?"},
      {"model.kind=residual_mlp; model.widths=[]; model.residual_mlp.output_width=2",
       "data.kind = \"sum_of_squares\" (default): needs a model ... output width of 1"},
      {"model.kind=residual_mlp; model.widths=[]; model.residual_mlp.width=2147483648; "
       "model.residual_mlp.inner_width=2147483648",
       "model.residual_mlp.width = 2147483648: gives more parameters than memory can address"},
      {"model.vae.latent=3",
       "model.kind = \"mlp\" (default): must be \"vae\" if keys such as model.vae.hidden are "
       "given"},
  });
  for (const std::string type : {"fp16", "bf16"})
    expect_rejected({{"model.dtype=float64", "distributed.mixed_precision = \"" + type +
                                                 "\": needs model.dtype = \"float32\""},
                     {"model.matmul_precision=tf32",
                      "model.matmul_precision = \"tf32\": needs distributed.mixed_precision = "
                      "\"no\""}},
                    "distributed.mixed_precision=" + type);
  expect_rejected(
      {
          {"model.vae.hidden=[7, 0]", "model.vae.hidden = [7, 0]: must all be positive"},
          {"model.vae.hidden=3", "model.vae.hidden = 3: must be a list of integers"},
          {"model.vae.beta=-1", "model.vae.beta = -1.0: must be finite and not negative"},
          {"model.vae.latnet=3", "did you mean model.vae.latent?"},
          {"model.vae.input_width=10", "data.kind = \"blobs\" ... a square"},
          {"model.output_activation=sigmoid", "model.output_activation = \"sigmoid\""},
          // A mean over elements would divide the divergence by the number of pixels.
          {"training.loss=mse",
           "training.loss = \"mse\" (default): must be one of relative_l2, bce"},
          {"training.loss=mae", "training.loss = \"mae\": must be one of relative_l2, bce"},
          {"training.loss=cross_entropy",
           "training.loss = \"cross_entropy\": must be one of relative_l2, bce for model.kind = "
           "\"vae\""},
      },
      "model.kind=vae; model.widths=[]; data.kind=blobs; training.loss=bce");
}

TEST(Rejections, TrainingAndData) {
  expect_rejected({
      {"training.batch_size=257", "training.batch_size = 257: must be at most data.samples = 256"},
      {"training.microbatches=33",
       "training.microbatches = 33: must be at most training.batch_size = 32"},
      {"training.validate_every=2", "training.validate_every = 2: needs data.validation_samples"},
      {"training.patience=2", "training.patience = 2: needs data.validation_samples"},
      {"model.widths=[4, 2147483648, 1]; training.batch_size=2147483648; data.samples=2147483648",
       "training.batch_size = 2147483648: gives more activations than memory can address"},
      {"schedule.kind=cosine", "schedule.kind = \"cosine\": needs schedule.steps"},
      {"schedule.kind=warmup_cosine; schedule.steps=9",
       "schedule.kind = \"warmup_cosine\": needs schedule.warmup_steps > 0"},
      {"schedule.kind=wsd; schedule.steps=9",
       "schedule.kind = \"wsd\": needs schedule.decay_steps"},
      {"schedule.kind=cosine; schedule.steps=-1", "schedule.steps = -1: must be positive"},
      {"data.validation_samples=9223372036854775807",
       "data.validation_samples = 9223372036854775807: is more data than memory can address"},
      {"data.samples=many", "data.samples = \"many\": must be an integer or \"all\""},
      {"data.samples=-9223372036854775808",
       "data.samples = -9223372036854775808: must be positive"},
      {"model.widths=[4, 64]; training.loss=bce",
       "data.kind = \"sum_of_squares\" (default): needs"},
      {"model.widths=[]; model.kind=transformer; data.kind=copy_task",
       "training.loss = \"mse\" (default): must be \"cross_entropy\""},
      {"model.widths=[]; model.kind=transformer; data.kind=bytes; data.file=f; "
       "training.loss=cross_entropy",
       "data.kind = \"bytes\": needs model.kind = \"transformer\" with "
       "model.transformer.vocabulary = 256"},
      {"data.samples=9223372036854775807",
       "data.samples = 9223372036854775807: is more data than memory can address"},
      {"training.learning_rate=nan", "training.learning_rate = nan: must be finite and not"},
      {"training.learning_rate=inf", "training.learning_rate = inf: must be finite and not"},
      {"training.learning_rate=-0.001", "training.learning_rate = -0.001: must be finite and not"},
      {"comm.timeout_seconds=nan", "comm.timeout_seconds =  ... must be from 0 (never) to 1e9 sec"},
      {"comm.timeout_seconds=-inf", "comm.timeout_seconds =  ... must be from 0 (never) to 1e9"},
      {"comm.timeout_seconds=2e9", "comm.timeout_seconds = 2 ... must be from 0 (never) to 1e9"},
      {"data.file=f", "data.file = \"f\": must not be set for data.kind = \"sum_of_squares\""},
      {"data.y=f", "data.y = \"f\": must not be set for data.kind = \"sum_of_squares\""},
      {"data.allow_nonfinite=true",
       "data.allow_nonfinite = true: must not be set for data.kind = \"sum_of_squares\""},
      {"data.kind=npy; data.y=y.npy",
       "data.x = \"\" (default): must name an array for data.kind = \"npy\""},
      {"data.kind=npy; data.x=x; data.y=y; data.file=f",
       "data.file = \"f\": must not be set for data.kind = \"npy\""},
  });
}

TEST(Rejections, SplitsOfALayerNameWhatTheUserSet) {
  const std::string transformer =
      "mesh=model=2; strategy=tensor; model.widths=[]; model.kind=transformer; "
      "data.kind=copy_task; "
      "training.loss=cross_entropy; model.transformer.heads=2";
  expect_rejected(
      {
          {"distributed.mesh_rules.embed=['model']; distributed.mesh_rules.vocab=[]; "
           "distributed.mesh_rules.mlp=[]; distributed.mesh_rules.heads=[]",
           "distributed.mesh_rules.embed = [\"model\"]: the embedding layer embedding/output "
           "cannot "
           "be split along model with P(None, 'model') for table"},
          {"distributed.parameter_specs.embedding/table=P(None, 'model')",
           "distributed.parameter_specs.\"embedding/table\" = \"P(None, 'model')\": the embedding "
           "layer embedding/output cannot be split along model with P(None, 'model') for table"},
          {"model.transformer.heads=1",
           "model.transformer.heads = 1: must be a multiple of the 2 ranks of the mesh axis model"},
      },
      transformer, 2);
}

TEST(Rejections, RulesAndSpecs) {
  expect_rejected(
      {
          {"distributed.mesh_rules.mpl=['model']",
           "distributed.mesh_rules.mpl = [\"model\"]: the name must be one of batch, embed, "
           "experts, heads, mlp, modes, vocab ... did you mean mlp?"},
          {"distributed.mesh_rules.mlp=['modle']",
           "distributed.mesh_rules.mlp = [\"modle\"]: \"modle\" must be one of pipeline, data, "
           "fsdp, expert, context, model; did you mean model?"},
          {"distributed.mesh_rules.embed=['']",
           "distributed.mesh_rules.embed = [\"\"]: \"\" must be one of"},
          {"distributed.mesh_rules.mlp=['model', 'fsdp']", "may name only the axis model"},
          {"distributed.mesh_rules.mlp=['model', 'model']",
           "distributed.mesh_rules.mlp ... must not name an axis twice"},
          {"distributed.mesh_rules.embed=['model']",
           "distributed.mesh_rules.embed = [\"model\"]: needs distributed.mesh_rules.mlp = []"},
          {"distributed.mesh_rules.batch=['data']",
           "distributed.mesh_rules.batch = [\"data\"]: must name fsdp ... data=2,fsdp=2,model=2"},
          {"distributed.mesh_rules.batch=['fsdp']", "must name data"},
          {"distributed.mesh_rules.batch=[]", "distributed.mesh_rules.batch = []: must name data"},
          {"distributed.mesh_rules.batch=['data', 'fsdp', 'model']",
           "may name only data, fsdp and expert"},
          {"model.widths=[]; model.kind=transformer; data.kind=copy_task; "
           "training.loss=cross_entropy; model.transformer.experts=-1",
           "experts = -1: must not be negative"},
          {"model.widths=[]; model.kind=transformer; data.kind=copy_task; "
           "training.loss=cross_entropy; model.transformer.experts=4; "
           "model.transformer.capacity_factor=-0.5",
           "capacity_factor = -0.5: must be finite and not negative"},
          {"mesh=expert=8",
           "distributed.mesh_axis_names = [\"expert\"]: may name expert only with "
           "model.transformer.experts"},
          {"distributed.parameter_specs.layer1/kernel=P('data', None)",
           "distributed.parameter_specs.\"layer1/kernel\" =  ... may name only the axis model"},
          {"distributed.parameter_specs.layer1/kernel=P('model', 'model')",
           "may name the axis model only once"},
          {"distributed.parameter_specs.layer1/bias=P(None, None)",
           "\"layer1/bias\" ... must be no longer than the 1 dimension of the tensor"},
          {"distributed.parameter_specs.layer1/kernal=P()",
           "distributed.parameter_specs.\"layer1/kernal\" = \"P()\": is not a parameter of the "
           "model; did you mean \"layer1/kernel\"?"},
          {"distributed.parameter_specs.zz=P()",
           "it has layer1/kernel, layer1/bias ... layer3/bias"},
          {"mesh=data=8; distributed.parameter_specs.layer1/kernel=P(None, 'model')",
           "needs a mesh axis model; the mesh is data=8"},
      },
      "mesh=data=2,fsdp=2,model=2; model.widths=[4, 64, 64, 1]", 8);
}

}  // namespace
}  // namespace tessera
