#include <linux/mm.h>

int madvise(int pages)
{
	return pages / BATCH;
}
