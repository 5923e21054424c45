int madvise(int pages);
int vmscan(int pages);
int schedule(void);

int start(void)
{
	return madvise(64) + vmscan(3) + schedule();
}
