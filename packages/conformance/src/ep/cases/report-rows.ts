// SPDX-License-Identifier: Apache-2.0
// What users of expert parallelism have reported, and whether a case shows that it does not happen here.

/** A report, as `owner/repository#number`. */
export type ReportRow = { readonly reports: readonly string[]; readonly what: string } & (
  | { readonly outcome: 'shown' }
  | { readonly outcome: 'not here'; readonly reason: string }
);

const shown = (what: string, ...reports: readonly string[]): ReportRow => ({
  what,
  reports,
  outcome: 'shown',
});
const notHere = (what: string, reason: string, ...reports: readonly string[]): ReportRow => ({
  what,
  reports,
  outcome: 'not here',
  reason,
});

export const reportRows: readonly ReportRow[] = [
  shown('two handles of a group take each other’s signals', 'NVIDIA/nccl#2303'),
  shown('a stale signal satisfies a later wait', 'NVIDIA/nccl-extensions#6'),
  notHere(
    'a change doubled the time of dispatch',
    'a matter of measuring: nccl-ext bench ep',
    'NVIDIA/nccl#2040',
  ),
  shown('the formula for receive sizes is wrong', 'NVIDIA/nccl#2123', 'NVIDIA/nccl#2164', 'NVIDIA/nccl#2252'),
  shown('memory for the worst case, nowhere said', 'NVIDIA/nccl#2038', 'marin-community/marin#7331'),
  shown('a handle per step allocates each time', 'NVIDIA/nccl#2084'),
  notHere(
    'bandwidth counted in both directions',
    'a test of the command’s formula: nccl-ext bench ep',
    'NVIDIA/nccl#2067',
  ),
  shown(
    'a rank that lags wedges the others',
    'SemiAnalysisAI/InferenceX#2331',
    'SemiAnalysisAI/InferenceX#2407',
    'SemiAnalysisAI/InferenceX#2815',
  ),
  shown(
    'tight capacity needs the exact demand',
    'NVIDIA/TransformerEngine#3035',
    'NVIDIA/TransformerEngine#3277',
    'NVIDIA/Megatron-LM#6229',
  ),
  shown('ranks with different numbers of tokens hang', 'deepseek-ai/DeepEP#744', 'deepseek-ai/DeepEP#208'),
  shown(
    'a rank without tokens crashes or falls out of step',
    'sgl-project/sglang#25397',
    'deepseek-ai/DeepEP#374',
    'uccl-project/uccl#993',
  ),
  notHere(
    'a buffer that is made while recording',
    'handles and groups own all they need before the first operation',
    'sgl-project/sglang#39078',
  ),
  shown(
    'high throughput cannot be recorded',
    'sgl-project/sglang#5014',
    'alibaba/rtp-llm#1308',
    'deepseek-ai/DeepEP#505',
  ),
  shown(
    'rows come in another order each time; fills race',
    'deepseek-ai/DeepEP#753',
    'deepseek-ai/DeepEP#689',
    'deepseek-ai/DeepEP#589',
    'deepseek-ai/DeepEP#600',
  ),
  notHere(
    'headers of another NCCL than the one that runs',
    'nothing of NCCL is on this path before a GPU backend loads it, which checks',
    'deepseek-ai/DeepEP#687',
    'deepseek-ai/DeepEP#688',
  ),
  shown('a timeout leaves hung processes', 'vllm-project/vllm#46509', 'NVIDIA-NeMo/Megatron-Bridge#1335'),
  shown(
    'a missing rank silently changes who takes part',
    'vllm-project/vllm#43637',
    'sgl-project/sglang#22872',
    'vllm-project/vllm#44428',
  ),
  shown(
    'masks abort the process, or mean the opposite elsewhere',
    'flashinfer-ai/flashinfer#4183',
    'vllm-project/vllm#47948',
  ),
  shown(
    'a hidden size is not in the list',
    'deepseek-ai/DeepEP#154',
    'deepseek-ai/DeepEP#329',
    'deepseek-ai/DeepEP#413',
    'deepseek-ai/DeepEP#458',
    'sgl-project/sglang#19468',
  ),
  notHere(
    'blocks read an epoch while another writes it',
    'a race within a kernel, which a backend without kernels cannot have',
    'microsoft/mscclpp#875',
  ),
  notHere('the grid follows experts, not tokens', 'a choice of a kernel’s launch', 'microsoft/mscclpp#831'),
  shown(
    'one group for both modes',
    'uccl-project/uccl#1023',
    'NVIDIA/TensorRT-LLM#15597',
    'sgl-project/sglang#38888',
  ),
  notHere(
    'some machines are slower than their bandwidth says',
    'a matter of measuring: nccl-ext bench ep',
    'deepseek-ai/DeepEP#576',
    'deepseek-ai/DeepEP#590',
    'deepseek-ai/DeepEP#579',
  ),
  notHere(
    'experts could begin before all rows are there',
    'rows are complete when their operation is; flags per expert are not offered',
    'deepseek-ai/DeepEP#492',
    'deepseek-ai/DeepEP#483',
  ),
];
