/* Makes threads until it cannot, and says how far it got. */
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

static void *sleeper(void *nothing) { pause(); return nothing; }
int main(void) {
  int made = 0;
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  for (pthread_t thread; made < 5000; made++) if (pthread_create(&thread, &small, sleeper, NULL)) break;
  usleep(300000);
  printf("%d\n", made);
  return 0;
}
