/* Opens files until it cannot, and says how far it got. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  int made = 0;
  while (open("/dev/null", O_RDONLY) >= 0) made++;
  printf("%d\n", made);
  return 0;
}
