// The table of one instruction set.
#include "edgeserve/kernels.h"

namespace edgeserve {
namespace ES_ISA {

void matmul_int8(const Matmul&, int32_t, int32_t);
void matmul_bf16(const Matmul&, int32_t, int32_t);
void matmul_f32(const Matmul&, int32_t, int32_t);
void dequantise_tile(const Packed&, int32_t, float*);
void gather(const Packed&, int32_t, float, float*);
void quantise(const float*, int32_t, QuantBlock*);
void to_bf16(const float*, int32_t, uint16_t*);
void rms_norm(const Norm&, const float*, float*);
void layer_norm(const Norm&, const float*, float*);
void unary(Unary, float, const float*, int32_t, float*);
void binary(Binary, const float*, const float*, int32_t, float*);
void gated(Unary, const float*, const float*, int32_t, float*);
void rope(const float*, const float*, int32_t, int32_t, bool, float*);
void store_key(const float*, int32_t, int32_t, bool, uint8_t*);
void store_value(const float*, int32_t, int32_t, bool, uint8_t*);
void attend(const Attend&);
void attend_part(const Attend&, int32_t, float*);
void attend_merge(const Attend&, float*, int64_t, int32_t);

#define ES_NAME_OF(isa) #isa
#define ES_NAME(isa) ES_NAME_OF(isa)

const Kernels& table() {
  static const Kernels kernels = {
      ES_NAME(ES_ISA), matmul_int8, matmul_bf16, matmul_f32, dequantise_tile, gather,
      quantise,        to_bf16,     rms_norm,    layer_norm, unary,           binary,
      gated,           rope,        store_key,   store_value, attend,
      attend_part,     attend_merge,
  };
  return kernels;
}

}  // namespace ES_ISA
}  // namespace edgeserve
