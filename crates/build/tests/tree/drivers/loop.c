int loop(void)
{
	return 7;
}
