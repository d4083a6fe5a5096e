// Data. A note of its own stands in its row; those of many rows have names.
#include "models/recipe/foreign_names.h"

#include <array>

namespace tilewave {
namespace {

constexpr std::string_view kSequences = "It counts tokens, not sequences: write how many sequences times how long they are.";
constexpr std::string_view kOnePass = "It counts the tokens of one pass; an update sums batch.accumulate passes.";
constexpr std::string_view kEpochs = "It counts optimizer steps, not passes over the data.";
constexpr std::string_view kRatio = "It counts steps: write the ratio times run.steps.";
constexpr std::string_view kLogged = "Every step is a line of the run's metrics.jsonl.";
constexpr std::string_view kRunFolder = "tilewave train --run DIR names the run's folder.";
constexpr std::string_view kResume = "tilewave train --resume goes on from the newest checkpoint.";
constexpr std::string_view kWeights = "tilewave train --weights PATH starts with the weights of a file, a folder or a run.";
constexpr std::string_view kAllValidated = "Validation goes over all validation data, in batches of the training's size.";
constexpr std::string_view kOneDevice = "A run trains on one device, which tilewave train --device NAME chooses.";
constexpr std::string_view kAdamW = "The optimizer is AdamW; its keys stand in [optimizer].";
constexpr std::string_view kNormKinds = R"(Its values are "layer_norm" and "rms_norm".)";
constexpr std::string_view kInitial = "docs/use/recipes.md has the formulas of the initial weights.";
constexpr std::string_view kPositions = R"(model.positions is "sinusoidal", "learned" or "rope"; there are no relative ones.)";
constexpr std::string_view kWholeHeads = "Rotary positions turn whole heads.";
constexpr std::string_view kNoWindows = "There are no sliding windows: a token sees all of the text before it.";
constexpr std::string_view kNoCaps = "Scores and logits are not soft-capped; model.attention_scale multiplies scores.";
constexpr std::string_view kDropouts =
    "Dropout falls on embeddings and sublayers' outputs (model.dropout) and on attention's weights (model.attention_dropout).";
constexpr std::string_view kBothSides = "Encoder and decoder share it.";
constexpr std::string_view kBiases = R"(Its values are "all", "none" and "qkv"; the vocabulary projection has none.)";
constexpr std::string_view kKept =
    "Activations are kept, not recomputed; a smaller batch with a larger batch.accumulate takes less memory.";
constexpr std::string_view kGraph = "Nothing is compiled; on a GPU a step is captured as one graph.";
constexpr std::string_view kNoBest = "A run takes run.steps; run.keep_best = true keeps the checkpoint of the least validation loss.";
constexpr std::string_view kPrePost = R"(Its values are "pre" and "post"; true is "pre" there.)";
constexpr std::string_view kLearned = R"(Its values are "sinusoidal", "learned" and "rope".)";
constexpr std::string_view kLeastRate = "It is a learning rate, not a fraction of the peak.";
constexpr std::string_view kFromZero = "The warm-up rises from 0.";
constexpr std::string_view kTwoBetas = "The second one is optimizer.beta2.";
constexpr std::string_view kTwoFiles = "The target language is data.target, line by line with it.";
constexpr std::string_view kOfTheTokenizer = "Special ids are the tokenizer's.";
constexpr std::string_view kPacked = "Sequences lie packed in a batch of tokens; none is padded.";
constexpr std::string_view kHost = "The host draws the next batch while a step runs.";
constexpr std::string_view kLoss = "The loss is cross entropy, smoothed by optimizer.label_smoothing.";
constexpr std::string_view kPrecision = R"(Its values are "fp32", "tf32", "bf16", "fp16" and "fp64".)";
constexpr std::string_view kDecoding = "tilewave translate and tilewave generate have it as an option.";
constexpr std::string_view kOneVocabulary = "Source and target share one vocabulary.";
constexpr std::string_view kNoAverage = "Weights are not averaged.";
constexpr std::string_view kCommands = "The command says what is done: tilewave train, tilewave translate, tilewave generate.";
constexpr std::string_view kMemory = "tilewave plan RECIPE says what a step takes.";
constexpr std::string_view kScales = "In fp16 the loss scale moves by itself.";
constexpr std::string_view kSameBits = "A run on the same device gives the same bits always.";
constexpr std::string_view kAtTheEnd = "It counts steps; 0 is at the end alone.";
constexpr std::string_view kArchitecture = R"(Its values are "encoder_decoder" and "decoder_only"; the sizes are keys of [model].)";
constexpr std::string_view kSchedules =
    R"(Its values are "constant", "inverse_square_root", "cosine", "linear" and "warmup_stable_decay".)";
constexpr std::string_view kTokenizers =
    R"(Its values are "bytes", "bpe", which is trained on the data, and the path of a tokenizer.json or a SentencePiece model.)";
constexpr std::string_view kGate = R"(A gated feed-forward layer is the activation "swiglu".)";
constexpr std::string_view kNoExperts = "There are no experts: every layer is dense.";
constexpr std::string_view kFiles = "It names a file; data.kind says what is in it.";

constexpr auto kKeys = std::to_array<Alias>({
    // Widths and depths.
    {"n_embd n_embed embed_dim embedding_dim embedding_size emb_dim emb_size hidden_size hidden_dim hidden model_dim "
     "model_size dim dim_model dim_emb word_vec_size rnn_size enc_rnn_size dec_rnn_size width n_state residual_dim",
     "model.d_model"},
    {"encoder_embed_dim decoder_embed_dim src_word_vec_size tgt_word_vec_size enc_hid_size dec_hid_size", "model.d_model", kBothSides},
    {"n_inner ffn_dim ffn_hidden ffn_hidden_size ffn_size ffn_embed_dim ff_dim d_inner d_hidden intermediate_size inner_dim "
     "inner_size dim_feedforward feedforward_dim filter_size transformer_ff transformer_dim_ffn mlp_dim mlp_hidden_dim "
     "hidden_ff",
     "model.d_ff"},
    {"encoder_ffn_dim decoder_ffn_dim encoder_ffn_embed_dim decoder_ffn_embed_dim", "model.d_ff", kBothSides},
    {"mlp_ratio", "model.d_ff", "It counts features: write the ratio times model.d_model."},
    {"ffn_dim_multiplier", "model.d_ff", "It counts features, not a multiple of another width."},
    {"multiple_of", "model.d_ff", "It counts features; round it to the multiple yourself."},
    {"n_head n_heads nhead num_heads num_attention_heads attention_heads n_attention_heads attn_heads num_attn_heads "
     "transformer_heads head_count",
     "model.heads"},
    {"encoder_attention_heads decoder_attention_heads num_encoder_attention_heads num_decoder_attention_heads", "model.heads", kBothSides},
    {"n_layer n_layers num_layers num_hidden_layers layers depth n_blocks num_blocks", "model.decoder_layers",
     "An encoder's are model.encoder_layers."},
    {"num_decoder_layers dec_layers dec_depth n_decoder_layers decoder_depth", "model.decoder_layers"},
    {"num_encoder_layers enc_layers enc_depth n_encoder_layers encoder_depth", "model.encoder_layers"},
    {"head_dim d_head dim_head d_kv kv_channels attention_head_size", "model.head_size"},
    {"num_key_value_heads n_kv_heads n_kv_head num_kv_heads num_query_groups", "model.kv_heads"},
    {"multi_query", "model.kv_heads", "1 is one head of keys and values for all queries."},
    {"qk_norm use_qk_norm qk_layernorm qk_layer_norm", "model.query_key_norm"},
    {"softmax_scale attention_multiplier attn_scale", "model.attention_scale"},
    {"query_pre_attn_scalar", "model.attention_scale", "It is 1 / sqrt of that number here."},
    {"attn_logit_softcapping final_logit_softcapping logit_softcapping soft_cap softcap", "", kNoCaps},
    {"sliding_window use_sliding_window window_size attention_window max_window_layers", "", kNoWindows},
    // Vocabulary and positions.
    {"vocab_size vocabulary_size n_vocab vocab num_embeddings num_tokens dim_vocabs", "model.vocabulary"},
    {"src_vocab_size tgt_vocab_size source_vocab_size target_vocab_size", "model.vocabulary", kOneVocabulary},
    {"padded_vocab_size pad_vocab_size_to_multiple_of pad_vocab_size_multiple pad_to_multiple_of "
     "make_vocab_size_divisible_by vocab_size_multiple",
     "guidelines.pad_vocabulary_to", "It is a multiple to round up to."},
    {"n_ctx n_positions max_position_embeddings max_positions_embeddings max_source_positions max_target_positions "
     "position_embeddings_size",
     "model.max_positions"},
    {"position_encoding position_embedding_type position_encoding_type pos_encoding pos_embedding positional_encoding "
     "positional_embedding encoder_learned_pos decoder_learned_pos learned_pos transformer_train_position_embeddings",
     "model.positions", kLearned},
    {"rope use_rotary_position_embeddings use_rope", "model.positions", kLearned},
    {"rope_theta rotary_base rotary_emb_base", "model.rope_base"},
    {"rope_type rope_parameters", "model.rope_scaling", R"(Its values are "none" and "llama3".)"},
    {"rope_scaling_factor scaling_factor", "model.rope_factor"},
    {"low_freq_factor", "model.rope_low_frequency"},
    {"high_freq_factor", "model.rope_high_frequency"},
    {"original_max_position_embeddings", "model.rope_original_positions"},
    {"rotary_dim rotary_pct rotary_percent partial_rotary_factor", "", kWholeHeads},
    {"alibi relative_attention_num_buckets max_relative_positions", "", kPositions},
    {"bos_token_id eos_token_id pad_token_id unk_token_id decoder_start_token_id eos_id bos_id pad_id", "", kOfTheTokenizer},
    // Form of the model.
    {"arch architectures model_type type model_name encoder_type decoder_type is_encoder_decoder model.name model.flavor",
     "model.architecture", kArchitecture},
    {"hidden_act activation_function activation_fn act_fn ffn_activation mlp_activation feed_forward_proj "
     "transformer_ffn_activation pos_ffn_activation_fn nonlinearity",
     "model.activation"},
    {"tie_word_embeddings tie_weights tie_embeddings tied_embeddings tied_embeddings_all tied_embeddings_src weight_tying "
     "share_embeddings share_all_embeddings share_decoder_embeddings share_decoder_input_output_embed tie_encoder_decoder "
     "shared_embedding",
     "model.tied"},
    {"untie_embeddings_and_output_weights", "model.tied", "true there is false here."},
    {"norm_first pre_norm prenorm pre_ln normalize_before encoder_normalize_before decoder_normalize_before layer_norm_first "
     "do_layer_norm_before apply_residual_connection_post_layernorm norm_position",
     "model.norm", kPrePost},
    {"transformer_preprocess", "model.norm", R"("n" there is "pre" here.)"},
    {"transformer_postprocess", "model.norm", R"("dan" there is "post" here.)"},
    {"layer_norm_epsilon layer_norm_eps layernorm_epsilon norm_eps norm_epsilon rms_norm_eps rmsnorm_eps", "model.epsilon"},
    {"norm_type use_rmsnorm rms_norm layer_normalization", "model.norm_kind", kNormKinds},
    {"bias attention_bias mlp_bias use_bias add_bias_linear qkv_bias add_qkvbias", "model.biases", kBiases},
    {"initializer_range init_method_std init_std init_method param_init param_init_glorot init_scale initializer_factor", "", kInitial},
    {"num_experts num_local_experts num_experts_per_tok moe expert_parallel_degree n_experts", "", kNoExperts},
    {"gated_mlp glu use_glu swiglu gated_linear_unit", "model.activation", kGate},
    // Dropout.
    {"dropout_rate dropout_prob hidden_dropout hidden_dropout_prob hidden_dropout_rate resid_pdrop resid_dropout "
     "residual_dropout embd_pdrop embd_dropout embedding_dropout emb_dropout transformer_dropout "
     "layer_prepostprocess_dropout drop_rate drop pdrop",
     "model.dropout"},
    {"attn_pdrop attn_dropout attn_drop attention_probs_dropout_prob attention_dropout_prob attention_dropout_rate "
     "transformer_dropout_attention",
     "model.attention_dropout"},
    {"activation_dropout relu_dropout ffn_dropout transformer_dropout_ffn classifier_dropout encoder_layerdrop "
     "decoder_layerdrop layerdrop dropout_steps dropout_src dropout_trg",
     "", kDropouts},
    // Data.
    {"dataset dataset_name dataset_type data_type corpus", "data.kind"},
    {"train_file train_path train_data train_data_path train_corpus dataset_path data_path data_dir data_root input_bin "
     "train_bin train_subset trainpref text_file corpus_path",
     "data.source", kFiles},
    {"train_src path_src src_train source_file source_path train_source train_sets src source_lang", "data.source", kTwoFiles},
    {"train_tgt path_tgt tgt_train target_file target_path train_target tgt trg target_lang", "data.target"},
    {"validation_file valid_file val_file eval_file dev_file validation_path val_data valid_data valid_data_path "
     "val_data_path input_val_bin val_bin valid_subset validpref eval_dataset dev_data",
     "data.validation_source", kFiles},
    {"valid_src val_src dev_src validation_src valid_sets", "data.validation_source",
     "The target language is data.validation_target, line by line with it."},
    {"valid_tgt val_tgt dev_tgt validation_tgt", "data.validation_target"},
    {"tokenizer_name tokenizer_path tokenizer_type tokenizer_file tokenizer_model vocab_file merge_file merges_file vocabs "
     "src_vocab tgt_vocab bpe sentencepiece_model src_subword_model src_subword_type tgt_subword_type",
     "data.tokenizer", kTokenizers},
    {"bpe_vocab_size spm_vocab_size tokenizer_vocab_size bpe_merges num_merges num_operations", "data.tokenizer_vocabulary"},
    {"data_seed dataset_seed shuffle_seed", "data.seed"},
    {"num_workers dataloader_num_workers dataloader_pin_memory dataloader_drop_last pin_memory prefetch_factor "
     "preprocessing_num_workers data_buffer_size maxi_batch maxi_batch_sort bucket_size pool_factor",
     "", kHost},
    {"group_by_length batch_type packing pad_to_max_length sample_break_mode mini_batch_fit maxi_batch_fit", "", kPacked},
    {"share_vocab joined_dictionary share_vocabulary", "", kOneVocabulary},
    // Batches.
    {"batch_size batch bsz bs mini_batch mini_batch_size minibatch_size micro_batch_size micro_batch device_batch_size "
     "per_device_batch_size per_device_train_batch_size per_gpu_train_batch_size train_batch_size "
     "train_micro_batch_size_per_gpu local_batch_size max_sentences sentences_per_batch",
     "batch.target_tokens", kSequences},
    {"max_tokens mini_batch_words tokens_per_batch batch_tokens max_tokens_per_batch num_tokens_per_batch", "batch.target_tokens",
     "An encoder's rows are batch.source_tokens."},
    {"global_batch_size total_batch_size effective_batch_size", "batch.target_tokens", kOnePass},
    {"per_device_eval_batch_size per_gpu_eval_batch_size eval_batch_size val_batch_size valid_batch_size "
     "validation_batch_size batch_size_valid max_tokens_valid valid_mini_batch",
     "", kAllValidated},
    {"block_size seq_len seq_length seqlen sequence_length max_seq_len max_seq_length max_seqlen max_length max_len "
     "max_sequence_length context_length context_size context_window ctx_len model_max_length tokens_per_sample "
     "src_seq_length tgt_seq_length max_source_length max_target_length src_seq_length_trunc tgt_seq_length_trunc bptt",
     "batch.sequence"},
    {"gradient_accumulation_steps gradient_accumulation grad_accum grad_accum_steps grad_accumulation_steps grad_acc_steps "
     "accumulation_steps accumulate_grad_batches accum_count accum_freq accum_iter update_freq update_every optimizer_delay "
     "num_microbatches",
     "batch.accumulate"},
    {"required_batch_size_multiple required_seq_len_multiple batch_size_multiple", "guidelines.batch_multiple_of",
     "It counts rows of tokens."},
    // Optimizer.
    {"lr max_lr peak_lr base_lr init_lr initial_lr learn_rate learningrate eta lr_max optimizer_lr", "optimizer.learning_rate"},
    {"betas adam_betas optimizer_params optim_betas", "optimizer.beta1", kTwoBetas},
    {"adam_beta1 beta_1 b1 adamw_beta1 optimizer_beta1 momentum", "optimizer.beta1"},
    {"adam_beta2 beta_2 b2 adamw_beta2 optimizer_beta2", "optimizer.beta2"},
    {"eps adam_eps adam_epsilon adamw_eps optimizer_eps", "optimizer.epsilon"},
    {"wd weightdecay adam_weight_decay l2 l2_reg l2_penalty", "optimizer.weight_decay"},
    {"grad_clip clip_grad clip clip_gradients clip_grad_norm grad_clip_norm gradient_clip gradient_clip_val "
     "gradient_clipping max_norm max_grad_norm grad_norm_clip clip_gradient_norm",
     "optimizer.clip_norm"},
    {"label_smoothing_factor label_smooth label_smoothing_eps ls_eps", "optimizer.label_smoothing"},
    {"criterion loss loss_fn cost_type z_loss lambda_coverage", "", kLoss},
    {"optim optimizer_name optimizer_type optim_method use_adamw fused adam_fused use_8bit_adam optimizer_class "
     "optimizer.name optimizer.type optimizer.implementation",
     "", kAdamW},
    {"exponential_smoothing ema ema_decay average_decay swa average_every", "", kNoAverage},
    {"fp16_init_scale loss_scale initial_scale_power fp16_scale_window min_loss_scale cost_scaling loss_scale_window "
     "grad_scaler",
     "", kScales},
    // Schedule.
    {"lr_scheduler lr_scheduler_type lr_schedule lr_decay_style lr_policy scheduler scheduler_type scheduler_name "
     "decay_method decay_type decay_lr learning_rate_schedule learning_rate_scheduler lr_decay_strategy lr_type "
     "warmup_policy",
     "schedule.kind", kSchedules},
    {"lr_decay_inv_sqrt", "schedule.kind", R"(Its value is "inverse_square_root"; how far it has fallen goes by schedule.warmup_steps.)"},
    {"warmup warmup_iters warmup_iterations warmup_updates warmup_batches num_warmup_steps n_warmup_steps lr_warmup "
     "lr_warmup_iters lr_warmup_steps warmup_num_steps learning_rate_warmup_steps",
     "schedule.warmup_steps"},
    {"warmup_ratio warmup_fraction lr_warmup_fraction warmup_proportion pct_start warmup_percent", "schedule.warmup_steps", kRatio},
    {"lr_decay_iters lr_decay_steps lr_decay_updates num_decay_steps total_num_update total_num_steps start_decay_steps "
     "max_decay_steps",
     "schedule.decay_steps"},
    {"decay_ratio warmdown_ratio warmdown_iters cooldown_steps lr_decay_ratio", "schedule.decay_steps",
     "It is the step at which a schedule ends."},
    {"min_lr lr_min end_learning_rate final_lr eta_min lr_end min_lr_ratio min_lr_factor stop_min_lr learning_rate_decay_frac "
     "final_lr_frac",
     "schedule.min_learning_rate", kLeastRate},
    {"warmup_init_lr warmup_start_lr lr_warmup_start_rate start_lr", "", kFromZero},
    {"learning_rate_decay lr_decay gamma lr_shrink lr_decay_rate step_size decay_rate", "schedule.kind", kSchedules},
    // Run.
    {"max_steps max_iters num_steps total_steps train_steps train_iters max_update max_updates num_iterations num_iters "
     "n_iters n_iter num_iter niter num_train_steps iterations iters training_steps n_steps after_batches max_train_steps "
     "num_training_steps",
     "run.steps"},
    {"epochs num_epochs max_epoch max_epochs n_epochs num_train_epochs after_epochs train_epochs train_samples "
     "max_train_samples after",
     "run.steps", kEpochs},
    {"random_seed manual_seed rng_seed init_seed torch_seed seed_value global_seed", "run.seed"},
    {"dtype torch_dtype data_type_name mixed_precision mixed_precision_param amp amp_dtype param_dtype compute_dtype "
     "model_dtype half_precision tensorcores autocast",
     "run.precision", kPrecision},
    {"bf16 bfloat16", "run.precision", R"(Its value is "bf16".)"},
    {"fp16 half float16", "run.precision", R"(Its value is "fp16".)"},
    {"tf32 allow_tf32", "run.precision", R"(Its value is "tf32".)"},
    {"fp32", "run.precision", R"(Its value is "fp32".)"},
    {"memory_efficient_fp16", "run.precision", R"(Its value is "fp16".)"},
    {"memory_efficient_bf16", "run.precision", R"(Its value is "bf16".)"},
    {"fp8", "run.precision", R"(There are no 8-bit types to train in; "bf16" is the narrowest that keeps fp32's range.)"},
    {"eval_interval eval_steps eval_every eval_freq eval_frequency val_interval val_every val_check_interval val_loss_every "
     "valid_freq valid_steps valid_interval validate_interval validate_interval_updates validation_steps validation_interval "
     "evaluation_interval check_val_every_n_steps eval_strategy evaluation_strategy disable_validation eval_only",
     "run.validate_every", kAtTheEnd},
    {"eval_iters eval_batches val_max_steps limit_val_batches max_eval_samples eval_max_batches", "", kAllValidated},
    {"save_interval save_steps save_every save_freq save_frequency save_iters save_interval_updates save_checkpoint_steps "
     "checkpoint_interval checkpoint_freq checkpoint_steps checkpoint_frequency save_strategy always_save_checkpoint no_save "
     "enable_checkpoint ckpt_interval ckpt_every",
     "run.checkpoint_every", kAtTheEnd},
    {"save_total_limit keep_checkpoint keep_checkpoints keep_last_epochs keep_interval_updates keep_last keep_last_n "
     "keep_latest_k max_to_keep max_checkpoints save_top_k num_checkpoints",
     "run.keep", "The latest ones stay; run.keep_best keeps the best too."},
    {"log_interval log_every log_every_n_steps log_freq logging_steps logging_strategy logging_first_step report_every "
     "disp_freq print_freq log_level log_format log_file report_to logging_dir log_dir wandb wandb_log wandb_project "
     "wandb_run_name wandb_entity use_wandb enable_wandb",
     "", kLogged},
    {"tensorboard tensorboard_dir tensorboard_logdir tensorboard_log_dir enable_tensorboard save_tb_folder", "run.log",
     R"(Its values are "none" and "tensorboard"; event files lie in the run folder.)"},
    {"output_dir out_dir save_dir dump_folder checkpoint_dir ckpt_dir model_dir work_dir run_name exp_name experiment_name "
     "save_model save_folder",
     "", kRunFolder},
    {"overwrite_output_dir", "", "tilewave train --force starts an ended run over."},
    {"resume resume_from resume_from_checkpoint train_from restore_file load_checkpoint checkpoint_path load_from resume_training "
     "reset_optim",
     "", kResume},
    {"init_from pretrained_model pretrained finetune_from_model model_name_or_path", "", kWeights},
    {"device gpu gpus gpu_ids gpuid gpu_ranks num_gpus devices n_gpu accelerator backend ddp ddp_backend distributed_backend "
     "distributed_world_size world_size local_rank nnodes num_nodes strategy fsdp deepspeed zero_stage zero_sharding "
     "tensor_parallel tensor_parallel_degree tensor_parallel_size tensor_model_parallel_size pipeline_parallel_degree "
     "pipeline_parallel_size pipeline_model_parallel_size data_parallel_degree data_parallel_replicate_degree "
     "data_parallel_shard_degree context_parallel_degree context_parallel_size sequence_parallel",
     "", kOneDevice},
    {"gradient_checkpointing activation_checkpointing activation_checkpoint recompute recompute_granularity use_recompute "
     "checkpoint_activations selective_recompute",
     "", kKept},
    {"compile torch_compile use_compile jit cuda_graph use_cuda_graph flash flash_attn flash_attention use_flash_attn "
     "use_flash_attention attn_implementation use_cache",
     "", kGraph},
    {"early_stopping early_stopping_patience patience load_best_model_at_end metric_for_best_model greater_is_better "
     "best_checkpoint_metric valid_metrics",
     "", kNoBest},
    {"beam_size beam num_beams beams length_penalty lenpen max_new_tokens top_k top_p temperature do_sample sample_every "
     "predict_with_generate normalize n_best",
     "", kDecoding},
    {"do_train do_eval do_predict", "", kCommands},
    {"workspace empty_cache_freq max_memory memory_limit", "", kMemory},
    {"deterministic full_determinism cudnn_deterministic use_deterministic_algorithms", "", kSameBits},
});

constexpr auto kValues = std::to_array<ForeignValue>({
    {"model.activation", "gelu gelu_python",
     R"(What torch and Hugging Face call gelu is "gelu_erf"; their gelu_new, approximate="tanh", is "gelu_tanh".)"},
    {"model.activation", "gelu_new gelu_pytorch_tanh gelu_fast gelu_approx gelu_approximate gelu_accurate tanh_gelu approximate_gelu",
     R"(It is "gelu_tanh".)"},
    {"model.activation", "gelu_exact gelu_none erf_gelu exact_gelu", R"(It is "gelu_erf".)"},
    {"model.activation", "swish swish_1", R"(Write "silu".)"},
    {"model.activation", "quick_gelu gelu_quick mish", R"(There is no such activation; the nearest in shape is "silu".)"},
    {"model.activation", "gated_silu silu_glu swish_glu", R"(Write "swiglu".)"},
    {"model.activation", "geglu reglu glu gated_gelu", R"(There is no such gate; the gated feed-forward layer is "swiglu".)"},
    {"model.activation",
     "relu2 relu_squared squared_relu relu_sq sqrelu leaky_relu elu relu6 selu hardtanh hard_sigmoid identity linear none",
     R"(There is no such activation; "relu" is the plainest.)"},
    {"model.norm", "pre_norm prenorm pre_ln preln pre_layernorm pre_layer_norm before first norm_first true", R"(Write "pre".)"},
    {"model.norm", "post_norm postnorm post_ln postln post_layernorm post_layer_norm after last false", R"(Write "post".)"},
    {"model.norm", "layernorm layer_norm rmsnorm rms_norm rms batchnorm none sandwich deepnorm",
     R"(The key says where norms stand, "pre" or "post" each sublayer; model.norm_kind says what they are.)"},
    {"model.norm_kind", "layernorm ln layer", R"(Write "layer_norm".)"},
    {"model.norm_kind", "rmsnorm rms t5 llama", R"(Write "rms_norm".)"},
    {"model.norm_kind", "batchnorm batch_norm groupnorm deepnorm identity",
     R"(There is no such norm; there are "layer_norm" and "rms_norm".)"},
    {"model.biases", "true yes on", R"(Write "all".)"},
    {"model.biases", "false no off", R"(Write "none".)"},
    {"model.rope_scaling", "default off false null", R"(Write "none".)"},
    {"model.rope_scaling", "llama llama_3 llama31 llama3_1", R"(Write "llama3".)"},
    {"model.rope_scaling", "yarn dynamic longrope linear ntk dynamic_ntk su mrope",
     R"(tilewave does not stretch positions like that; "llama3" stretches long waves alone.)"},
    {"model.positions", "rotary", R"(Write "rope".)"},
    {"model.positions", "alibi relative t5 none nope",
     R"(There are no relative positions but "rope"; "sinusoidal" is the table that needs no training.)"},
    {"model.positions", "sine sin sinusoid sincos fixed absolute sinusoidal_absolute", R"(Write "sinusoidal".)"},
    {"model.positions", "learnt learnable trained trainable embedding embeddings gpt2", R"(Write "learned".)"},
    {"model.architecture",
     "gpt gpt2 gpt_2 gpt3 llama decoder causal causal_lm lm language_model transformer_lm gpt2lmheadmodel llamaforcausallm "
     "transformer_decoder",
     R"(Write "decoder_only", with encoder_layers = 0.)"},
    {"model.architecture", "transformer seq2seq s2s t5 bart marian nmt translation mt transformer_wmt_en_de transformer_iwslt_de_en",
     R"(Write "encoder_decoder" for translation, or "decoder_only" for text.)"},
    {"model.architecture", "bert roberta encoder encoder_only vit mamba rnn lstm moe",
     R"(There is no such model; there are "encoder_decoder" and "decoder_only".)"},
    {"run.precision", "float16 half f16 16 16_mixed 16_true fp16_mixed amp float16_mixed", R"(Write "fp16".)"},
    {"run.precision", "bfloat16 bf bf16_mixed bf16_true bfloat bfloat16_mixed brain", R"(Write "bf16".)"},
    {"run.precision", "float32 float single full f32 32 32_true no false none fp32_true", R"(Write "fp32".)"},
    {"run.precision", "float64 double f64 64 64_true", R"(Write "fp64".)"},
    {"run.precision", "tensorfloat32 tensorfloat tfloat32 high", R"(Write "tf32".)"},
    {"run.precision", "fp8 float8 f8 8 e4m3 e5m2 fp8_e4m3 mxfp8 fp4 nvfp4 mxfp4 int8 int4",
     R"(There are no types of 8 bits or fewer to train in; "bf16" is the narrowest that keeps fp32's range.)"},
    {"run.precision", "true auto mixed", R"(Write which one: on a GPU "bf16" keeps fp32's range.)"},
    {"schedule.kind", "linear_with_warmup linear_decay linear_warmup polynomial polynomial_decay poly warmup_linear",
     R"(Write "linear", which falls to schedule.min_learning_rate at schedule.decay_steps.)"},
    {"schedule.kind", "noam inverse_sqrt inv_sqrt inversesqrt rsqrt isqrt sqrt inverse_square_root_decay transformer vaswani",
     R"(Write "inverse_square_root".)"},
    {"schedule.kind",
     "cosine_with_min_lr cosine_decay cosine_annealing cosine_annealing_lr cosineannealinglr cosine_warmup warmup_cosine "
     "annealing cosine_with_warmup",
     R"(Write "cosine", which falls to schedule.min_learning_rate at schedule.decay_steps.)"},
    {"schedule.kind", "cosine_with_restarts cosine_annealing_warm_restarts onecycle one_cycle cyclic sgdr",
     R"(There are no restarts; "cosine" falls once, to its end at schedule.decay_steps.)"},
    {"schedule.kind", "constant_with_warmup fixed none const flat no warmup false",
     R"(Write "constant"; schedule.warmup_steps rises to it.)"},
    {"schedule.kind", "step steplr multistep exponential plateau reduce_lr_on_plateau tri_stage",
     R"(There is no such schedule; "constant", "inverse_square_root", "cosine", "linear" and "warmup_stable_decay" follow a linear warm-up.)"},
    {"schedule.kind", "wsd trapezoid trapezoidal warmup_stable_decay_lr", R"(Write "warmup_stable_decay".)"},
    {"data.kind", "token bin binary ids tokenized pretokenized memmap mmap fineweb fineweb10b llmc openwebtext",
     R"(Write "tokens", which reads llm.c's .bin files.)"},
    {"data.kind", "txt raw lm language_modeling plain file shakespeare tinyshakespeare wikitext",
     R"(Write "text", with data.source as the file.)"},
    {"data.kind", "translation bitext pairs seq2seq mt wmt wmt14 iwslt iwslt14 tsv parallel_text",
     R"(Write "parallel", with data.source and data.target as two files of as many lines.)"},
    {"data.kind", "random dummy fake mock noise", R"(Write "synthetic".)"},
    {"data.kind", "json jsonl csv parquet arrow hf huggingface c4",
     R"(There is no such reader; "text", "parallel" and "tokens" read files of plain lines or of ids.)"},
    {"data.tokenizer", "sentencepiece spm sp subword subword_nmt byte_pair byte_pair_encoding",
     R"(Write "bpe", SentencePiece's byte-pair encoding trained on the data.)"},
    {"data.tokenizer", "unigram wordpiece word words bert whitespace",
     R"(There is no such tokenizer; "bpe" is trained on the data, "bytes" needs no training, and a file of one's own is named by its path.)"},
    {"data.tokenizer", "gpt2 gpt_2 tiktoken cl100k_base o200k_base llama t5 gpt4",
     R"(Name the folder or the tokenizer.json that holds it, such as "models/gpt2"; one that is trained on the data is "bpe".)"},
    {"data.tokenizer", "char chars character characters byte utf8 utf_8 byte_level none ascii", R"(Write "bytes".)"},
    {"gemm.engine", "cutlass triton torch aten mkl openblas onednn blis rocblas",
     R"(There is no such engine; "tilewave" are tilewave's GEMMs, "cublas" and "cublaslt" NVIDIA's libraries.)"},
    {"gemm.engine", "own native default auto builtin house inhouse", R"(Write "tilewave".)"},
    {"gemm.alignment_policy", "none off loose relaxed free false", R"(Write "any".)"},
    {"gemm.alignment_policy", "on multiple_of_8 aligned enforce required true", R"(Write "strict".)"},
    {"guidelines.wave_free_batch", "true on auto yes", R"(Write "nearest", "up" or "down".)"},
    {"guidelines.wave_free_batch", "false no none 0", R"(Write "off".)"},
    {"guidelines.wave_role", "fwd fprop fwd_prop", R"(Write "forward".)"},
    {"guidelines.wave_role", "bwd_data data_gradient dx backward_data", R"(Write "dgrad".)"},
    {"guidelines.wave_role", "bwd_weight weight_gradient dw backward_weight", R"(Write "wgrad", whose tiles do not depend on rows.)"},
    {"guidelines.row_pitch", "padded pad true on", R"(Write "aligned".)"},
    {"guidelines.row_pitch", "contiguous dense compact unpadded none false off", R"(Write "packed".)"},
    {"guidelines.ffn_hidden_layout", "row_major rows tokens", R"(Write "token_major".)"},
    {"guidelines.ffn_hidden_layout", "column_major col_major columns features transposed", R"(Write "feature_major".)"},
});

constexpr ForeignNames kForeignNames = {.keys = kKeys, .values = kValues};

}  // namespace

const ForeignNames& foreign_names() { return kForeignNames; }

}  // namespace tilewave
