/* Leaves children that nobody waits for, and children of children. */
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
  for (int child = 0; child < 50; child++)
    if (fork() == 0) {
      if (fork() == 0) _exit(0);
      _exit(0);
    }
  usleep(200000);
  puts("done");
  return 0;
}
