#define BATCH 32
